//! What operators use: MQSC, and what MQSC has no word for.

use ferrymq_proto::admin_v1::{
    CreateBackupRequest, CreateBackupResponse, DumpRequest, DumpResponse, ExportDefinitionsRequest,
    ListAccountRequest, ListAccountResponse, ListMembersRequest, ListMembersResponse,
    RunMqscRequest, RunMqscResponse,
};
use ferrymq_types::Timestamp;

use crate::{Client, ClientError, Responses};

/// Administration over a client's connection.
#[derive(Debug)]
pub struct Admin<'a> {
    client: &'a Client,
}

impl<'a> Admin<'a> {
    pub(crate) fn new(client: &'a Client) -> Self {
        Self { client }
    }

    /// Runs one MQSC command, continuation lines joined, on `queue_manager` (empty is the only one of the node). A
    /// command that the queue manager refuses is an answer, not an error: see its `completion_code` and `reason`.
    ///
    /// # Errors
    /// [`ClientError::Refused`] if the command could not be run at all.
    pub async fn run_mqsc(
        &self,
        queue_manager: &str,
        command: &str,
    ) -> Result<RunMqscResponse, ClientError> {
        let request = self.client.request(RunMqscRequest {
            queue_manager: queue_manager.to_owned(),
            command: command.to_owned(),
        });
        let mut admin = self.client.administration();
        self.client.answer(admin.run_mqsc(request)).await
    }

    /// The definitions of `queue_manager` (empty is the only one of the node) as lines of MQSC that make them.
    ///
    /// # Errors
    /// [`ClientError::Refused`], such as 2035 or 2058.
    pub async fn export_definitions(
        &self,
        queue_manager: &str,
    ) -> Result<Vec<String>, ClientError> {
        let request = self.client.request(ExportDefinitionsRequest {
            queue_manager: queue_manager.to_owned(),
        });
        let mut admin = self.client.administration();
        let answer = self
            .client
            .answer(admin.export_definitions(request))
            .await?;
        Ok(answer.lines)
    }

    /// The members of the cluster, as the node that answers knows them.
    ///
    /// # Errors
    /// [`ClientError::Refused`], such as 2035.
    pub async fn members(&self) -> Result<ListMembersResponse, ClientError> {
        let request = self.client.request(ListMembersRequest {});
        let mut admin = self.client.administration();
        self.client.answer(admin.list_members(request)).await
    }

    /// Lets the node make a backup of itself in `directory`, an absolute path on its own machine that does not exist yet.
    ///
    /// # Errors
    /// [`ClientError::Refused`], such as 2035, 2192, or 3008 with what is wrong with the directory.
    pub async fn create_backup(
        &self,
        directory: &str,
    ) -> Result<CreateBackupResponse, ClientError> {
        let request = self.client.request(CreateBackupRequest {
            directory: directory.to_owned(),
        });
        let mut admin = self.client.administration();
        self.client.answer(admin.create_backup(request)).await
    }

    /// Every message of every queue of `queue_manager`. Reads and changes nothing.
    ///
    /// # Errors
    /// [`ClientError::Refused`], such as 2035.
    pub async fn dump(&self, queue_manager: &str) -> Result<Responses<DumpResponse>, ClientError> {
        let request = DumpRequest {
            queue_manager: queue_manager.to_owned(),
        };
        let mut admin = self.client.administration();
        let stream = self.client.answer(admin.dump(request)).await?;
        Ok(Responses::new(stream, self.client.deadline()))
    }

    /// The messages that left a queue of `queue_manager` by another way than a committed get, from `since` on.
    ///
    /// # Errors
    /// [`ClientError::Refused`], such as 2035.
    pub async fn account(
        &self,
        queue_manager: &str,
        since: Timestamp,
    ) -> Result<Responses<ListAccountResponse>, ClientError> {
        let request = ListAccountRequest {
            queue_manager: queue_manager.to_owned(),
            since_ms: since.as_millis(),
        };
        let mut admin = self.client.administration();
        let stream = self.client.answer(admin.list_account(request)).await?;
        Ok(Responses::new(stream, self.client.deadline()))
    }
}
