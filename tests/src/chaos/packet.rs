//! What the relay has to know of a packet.

use std::net::Ipv4Addr;

use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};

/// Time to live of packets that the relay makes.
const TIME_TO_LIVE: u8 = 64;

/// Where an IPv4 packet comes from and where it goes; `None` for any other.
#[must_use]
pub fn addresses(packet: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
    if packet.first()? >> 4 != 4 {
        return None;
    }
    let field = |at: usize| -> Option<Ipv4Addr> {
        let four: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
        Some(four.into())
    };
    Some((field(12)?, field(16)?))
}

/// Whether it belongs to a TCP connection.
#[must_use]
pub fn is_tcp(packet: &[u8]) -> bool {
    packet.get(9) == Some(&6)
}

/// The two packets that end the connection of a packet: for its receiver, and for its sender. `None` if it is not TCP.
#[must_use]
pub fn resets(packet: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let (from, to) = addresses(packet)?;
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else {
        return None;
    };
    let make = |from: Ipv4Addr, to: Ipv4Addr, ports: (u16, u16), sequence: u32| {
        let builder = PacketBuilder::ipv4(from.octets(), to.octets(), TIME_TO_LIVE)
            .tcp(ports.0, ports.1, sequence, 0)
            .rst();
        let mut bytes = Vec::with_capacity(builder.size(0));
        builder.write(&mut bytes, &[]).ok()?;
        Some(bytes)
    };
    let (source, destination) = (tcp.source_port(), tcp.destination_port());
    // The receiver expects this number next, if nothing before it was lost; the sender the one that it acknowledges.
    let ahead = make(from, to, (source, destination), tcp.sequence_number())?;
    let back = make(to, from, (destination, source), tcp.acknowledgment_number())?;
    Some((ahead, back))
}
