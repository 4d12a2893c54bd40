//! `ferrymq cluster members`.

use ferrymq_client::admin_wire::{ListMembersResponse, Member};
use serde::Serialize;

use crate::commands::TIMEOUT_DEFAULT;
use crate::failure::Failure;
use crate::invocation::{Invocation, Retry};

#[derive(Debug, Serialize)]
struct MembersDocument<'a> {
    node_id: u64,
    term: u64,
    applied_index: u64,
    committed_index: u64,
    quorum: bool,
    members: Vec<MemberDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct MemberDocument<'a> {
    id: u64,
    name: &'a str,
    peer_address: &'a str,
    role: &'a str,
    matched_index: u64,
    qmgrs: &'a [String],
}

impl<'a> MembersDocument<'a> {
    fn new(members: &'a ListMembersResponse) -> Self {
        let member = |m: &'a Member| MemberDocument {
            id: m.id,
            name: &m.name,
            peer_address: &m.peer_address,
            role: &m.role,
            matched_index: m.matched_index,
            qmgrs: &m.queue_managers,
        };
        Self {
            node_id: members.node_id,
            term: members.term,
            applied_index: members.applied_index,
            committed_index: members.committed_index,
            quorum: members.quorum,
            members: members.members.iter().map(member).collect(),
        }
    }
}

const HEADING: &[&str] = &["ID", "NAME", "ADDRESS", "ROLE", "MATCHED", "QUEUE MANAGERS"];

pub(crate) async fn members(invocation: &mut Invocation) -> Result<(), Failure> {
    let connected = invocation.connect(Retry::No, TIMEOUT_DEFAULT).await?;
    let members = connected.client.admin().members().await?;
    let output = &mut invocation.output;
    if !output.is_text() {
        return output.document(&MembersDocument::new(&members));
    }
    let row = |m: &Member| {
        vec![
            m.id.to_string(),
            m.name.clone(),
            m.peer_address.clone(),
            m.role.clone(),
            m.matched_index.to_string(),
            m.queue_managers.join(","),
        ]
    };
    let rows: Vec<Vec<String>> = members.members.iter().map(row).collect();
    output.table(HEADING, &rows)?;
    output.remark(&format!(
        "seen from node {}, term {}, applied {} of {}, {}",
        members.node_id,
        members.term,
        members.applied_index,
        members.committed_index,
        if members.quorum {
            "quorum"
        } else {
            "NO QUORUM: definitions cannot change"
        }
    ));
    Ok(())
}
