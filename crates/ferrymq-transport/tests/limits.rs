//! Deadlines, counts and noise: the listener serves on.

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use common::{LONG, Server, Site, call, pattern};
use ferrymq_tls::{ClientVerification, ServerRule};
use ferrymq_transport::{
    ConnectError, ListenError, Listener, ListenerSecurity, RefusalCause, ServerLimits, Target,
    connect,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Reads until the other end closes.
async fn closed(mut socket: TcpStream) {
    let mut sink = Vec::new();
    // A reset closes as well as an end of file does.
    tokio::time::timeout(LONG, socket.read_to_end(&mut sink))
        .await
        .expect("the server closes the connection")
        .unwrap_or_default();
}

#[tokio::test]
async fn sec_w4_a_silent_socket_is_closed_at_the_handshake_deadline() {
    let site = Site::new("CN=Test CA");
    let deadline = Duration::from_millis(50);
    let mut server = Server::tls(
        site.server_files(),
        ClientVerification::Optional,
        ServerLimits {
            handshake_deadline: deadline,
            ..ServerLimits::default()
        },
    );
    let silent = TcpStream::connect(server.handle.local_addr())
        .await
        .unwrap();
    let refusal = server.refusal().await;
    assert_eq!(refusal.address, silent.local_addr().unwrap());
    assert!(matches!(refusal.cause, RefusalCause::HandshakeTimeout(d) if d == deadline));
    closed(silent).await;
    assert_eq!(server.handle.stats().handshakes_failed(), 1);
}

#[tokio::test]
async fn sec_w4_a_peer_that_does_not_begin_http2_is_closed() {
    let server = Server::start(
        ListenerSecurity::PlainLoopback,
        ServerLimits {
            preface_deadline: Duration::from_millis(50),
            ..ServerLimits::default()
        },
    );
    for start in [&b""[..], b"PRI * HTTP/2.0"] {
        let mut slow = TcpStream::connect(server.handle.local_addr())
            .await
            .unwrap();
        slow.write_all(start).await.unwrap();
        closed(slow).await;
    }
    assert!(server.peers.lock().unwrap().is_empty());
}

#[tokio::test]
async fn sec_w4_silent_sockets_do_not_keep_others_out() {
    let site = Site::new("CN=Test CA");
    let mut server = Server::tls(
        site.server_files(),
        ClientVerification::Optional,
        ServerLimits {
            handshakes_max: 2,
            handshake_deadline: LONG,
            ..ServerLimits::default()
        },
    );
    let first = TcpStream::connect(server.handle.local_addr())
        .await
        .unwrap();
    let second = TcpStream::connect(server.handle.local_addr())
        .await
        .unwrap();
    let tls = site.client_tls(None, ServerRule::HostName);
    call(&server.connect(Some(&tls)).await.unwrap())
        .await
        .unwrap();
    let refusal = server.refusal().await;
    assert_eq!(refusal.address, first.local_addr().unwrap());
    assert!(matches!(refusal.cause, RefusalCause::TooManyHandshakes));
    closed(first).await;
    drop(second);
}

#[tokio::test]
async fn sec_w6_garbage_does_not_end_the_accept_loop() {
    let site = Site::new("CN=Test CA");
    let mut server = Server::tls(
        site.server_files(),
        ClientVerification::Optional,
        ServerLimits::default(),
    );
    for noise in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        &[0; 64],
        &[0xff; 4096],
        // A ClientHello that announces 16 KiB and then does not come.
        &[22, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc],
        b"\x16",
    ] {
        let mut socket = TcpStream::connect(server.handle.local_addr())
            .await
            .unwrap();
        socket.write_all(noise).await.unwrap();
        socket.shutdown().await.unwrap_or_default();
        server.refusal().await;
    }
    assert_eq!(server.handle.stats().handshakes_failed(), 5);
    let tls = site.client_tls(None, ServerRule::HostName);
    call(&server.connect(Some(&tls)).await.unwrap())
        .await
        .unwrap();
}

#[tokio::test]
async fn sec_w6_garbage_on_a_plain_listener_does_no_harm() {
    let server = Server::start(ListenerSecurity::PlainLoopback, ServerLimits::default());
    for noise in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4096]] {
        let mut socket = TcpStream::connect(server.handle.local_addr())
            .await
            .unwrap();
        socket.write_all(noise).await.unwrap();
        closed(socket).await;
    }
    let connection = server.connect(None).await.unwrap();
    call(&connection).await.unwrap();
    let peer = server.last_peer();
    assert!(!peer.tls);
    assert!(peer.certificate.is_none());
}

#[tokio::test]
async fn a_connection_over_the_cap_is_refused_and_a_place_comes_back() {
    let mut server = Server::start(
        ListenerSecurity::PlainLoopback,
        ServerLimits {
            connections_max: 2,
            ..ServerLimits::default()
        },
    );
    let first = server.connect(None).await.unwrap();
    call(&first).await.unwrap();
    let second = server.connect(None).await.unwrap();
    call(&second).await.unwrap();
    let second_peer = server.last_peer();
    let third = TcpStream::connect(server.handle.local_addr())
        .await
        .unwrap();
    let refusal = server.refusal().await;
    assert_eq!(refusal.address, third.local_addr().unwrap());
    assert!(matches!(refusal.cause, RefusalCause::TooManyConnections));
    closed(third).await;
    assert_eq!(server.handle.stats().refused_over_limit(), 1);
    call(&first).await.unwrap();
    // Ended by the server, so that its end of the connection is known to be gone.
    second_peer.disconnect();
    call(&second).await.unwrap_err();
    drop(second);
    let again = tokio::time::timeout(LONG, async {
        loop {
            if let Ok(connection) = server.connect(None).await
                && call(&connection).await.is_ok()
            {
                return connection;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the place comes back");
    call(&again).await.unwrap();
}

#[test]
fn a_plain_listener_on_an_address_of_other_machines_is_refused() {
    for address in [
        "0.0.0.0:0",
        "[::]:0",
        "192.0.2.1:0",
        "[2001:db8::1]:0",
        "[::ffff:192.0.2.1]:0",
    ] {
        let address: SocketAddr = address.parse().unwrap();
        let error = Listener::bind(
            address,
            ListenerSecurity::PlainLoopback,
            ServerLimits::default(),
        )
        .unwrap_err();
        assert!(matches!(error, ListenError::PlainText(a) if a == address));
    }
}

#[tokio::test]
async fn plain_text_to_another_machine_is_refused_before_it_is_dialled() {
    let target: Target = "192.0.2.1:1414".parse().unwrap();
    let error = connect(&[target], None, LONG).await.unwrap_err();
    assert!(matches!(error, ConnectError::PlainText { .. }), "{error:?}");
}

#[tokio::test]
async fn an_address_in_use_is_an_error_that_names_it() {
    let server = Server::start(ListenerSecurity::PlainLoopback, ServerLimits::default());
    let error = Listener::bind(
        server.handle.local_addr(),
        ListenerSecurity::PlainLoopback,
        ServerLimits::default(),
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .contains(&server.handle.local_addr().to_string())
    );
}

#[tokio::test]
async fn targets_are_tried_in_order_and_the_most_telling_failure_is_reported() {
    let site = Site::new("CN=Test CA");
    let server = Server::tls(
        site.server_files(),
        ClientVerification::Optional,
        ServerLimits::default(),
    );
    // Bound and closed again: nobody listens there.
    let gone: Target = {
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        socket.local_addr().unwrap().into()
    };
    let tls = site.client_tls(None, ServerRule::HostName);
    let targets = [gone.clone(), server.target()];
    let connection = connect(&targets, Some(&tls), LONG).await.unwrap();
    assert_eq!(connection.server().target, server.target());

    let error = connect(std::slice::from_ref(&gone), Some(&tls), LONG)
        .await
        .unwrap_err();
    assert!(
        matches!(error, ConnectError::Unreachable { .. }),
        "{error:?}"
    );
    assert_eq!(error.reason().get(), 2538);

    let picky = site.client_tls(None, ServerRule::Name(pattern("CN=other")));
    let targets = [server.target(), gone];
    let error = connect(&targets, Some(&picky), LONG).await.unwrap_err();
    assert!(
        matches!(error, ConnectError::PeerRefused { .. }),
        "{error:?}"
    );

    let error = connect(&[], None, LONG).await.unwrap_err();
    assert!(
        matches!(error, ConnectError::Unreachable { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_server_that_never_answers_the_handshake_is_given_up_at_the_deadline() {
    let site = Site::new("CN=Test CA");
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target: Target = socket.local_addr().unwrap().into();
    let tls = site.client_tls(None, ServerRule::HostName);
    let after = Duration::from_millis(50);
    let error = connect(&[target], Some(&tls), after).await.unwrap_err();
    assert!(matches!(error, ConnectError::Timeout { .. }), "{error:?}");
    assert_eq!(error.reason().get(), 2538);
}

#[tokio::test]
async fn a_stopped_listener_ends_its_connections_after_the_grace_period() {
    let server = Server::start(
        ListenerSecurity::PlainLoopback,
        ServerLimits {
            shutdown_grace: Duration::from_millis(10),
            ..ServerLimits::default()
        },
    );
    let connection = server.connect(None).await.unwrap();
    // A stream that never ends by itself.
    let mut watch = tonic_health::pb::health_client::HealthClient::new(connection.channel())
        .watch(tonic_health::pb::HealthCheckRequest::default())
        .await
        .unwrap()
        .into_inner();
    watch.message().await.unwrap();
    let address = server.handle.local_addr();
    tokio::time::timeout(LONG, server.handle.stop())
        .await
        .expect("the listener ends")
        .unwrap();
    watch.message().await.unwrap_err();
    TcpStream::connect(address).await.unwrap_err();
}

#[tokio::test]
async fn a_lost_connection_is_not_opened_again() {
    let server = Server::start(ListenerSecurity::PlainLoopback, ServerLimits::default());
    let connection = server.connect(None).await.unwrap();
    call(&connection).await.unwrap();
    let accepted = server.handle.stats().accepted();
    server.last_peer().disconnect();
    // The first call may see the end of the connection, the later ones that there is none.
    for _ in 0..3 {
        call(&connection).await.unwrap_err();
    }
    assert_eq!(server.handle.stats().accepted(), accepted);
}

#[test]
fn targets_are_host_and_port() {
    for (text, host, port) in [
        ("localhost:1414", "localhost", 1414),
        ("qm1.example.com:1", "qm1.example.com", 1),
        ("127.0.0.1:65535", "127.0.0.1", 65535),
        ("[::1]:1414", "::1", 1414),
        ("qm_1:1414", "qm_1", 1414),
    ] {
        let target: Target = text.parse().unwrap();
        assert_eq!((target.host.as_str(), target.port), (host, port));
        assert_eq!(target.to_string(), text);
    }
    for text in [
        "",
        "host",
        ":1414",
        "host:",
        "host:x",
        "host:65536",
        "::1:1414",
        "[::1]",
        "a b:1",
        "host/path:1",
        "user@host:1",
        "[x]:1",
        "a\n:1",
    ] {
        text.parse::<Target>().unwrap_err();
    }
}

#[tokio::test]
async fn a_dropped_handle_ends_the_listener_and_its_connections() {
    let server = Server::start(ListenerSecurity::PlainLoopback, ServerLimits::default());
    let connection = server.connect(None).await.unwrap();
    call(&connection).await.unwrap();
    drop(server.handle);
    call(&connection).await.unwrap_err();
}
