//! Connecting, and what every call has in common.

use core::future::Future;
use std::time::Duration;

use tokio::time::Instant;
use tonic::metadata::AsciiMetadataValue;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel as GrpcChannel;
use tonic::{Code, Request, Response, Status};

use ferrymq_proto::admin_v1::admin_client::AdminClient;
use ferrymq_proto::v1::messaging_client::MessagingClient;
use ferrymq_tls::{ClientFiles, ClientTls, ServerRule};
use ferrymq_transport::{ConnectError, Connection, connect};
use ferrymq_types::{ChannelName, MESSAGE_LENGTH_MAX};

use crate::{Admin, ClientError, ServerUrl};

/// Bytes of a gRPC message beside the data of the message that it carries: descriptor, headers, framing.
const ENVELOPE_LENGTH_MAX: usize = 64 * 1024;

/// How long to wait before a closed port is tried again: short, since a queue manager that starts is up soon.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// How long an address may take to answer if the options set no limit.
const CONNECT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// How to connect.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// Where the queue manager is.
    pub server: ServerUrl,
    /// Certificates, for an `https://` address. Without them such an address is refused: no authority is trusted by
    /// default.
    pub tls: Option<ClientFiles>,
    /// Which server is accepted over TLS. Default: one whose certificate is for the host that was dialled.
    pub server_rule: ServerRule,
    /// MQSC `CHANNEL`: the server-connection channel. Default: the queue manager's choice.
    pub channel: Option<ChannelName>,
    /// `PutApplName` of messages that this client puts. Default: none.
    pub application: Option<String>,
    /// How long connecting and all calls of the client may take together. Default: no limit.
    pub timeout: Option<Duration>,
    /// How long a closed port is tried again. Default: not at all.
    pub retry_for: Duration,
}

impl ConnectOptions {
    /// The defaults for `server`.
    #[must_use]
    pub fn new(server: ServerUrl) -> Self {
        Self {
            server,
            tls: None,
            server_rule: ServerRule::HostName,
            channel: None,
            application: None,
            timeout: None,
            retry_for: Duration::ZERO,
        }
    }
}

/// The end of the time for a client's calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
    timeout: Duration,
}

impl Deadline {
    fn after(timeout: Duration) -> Option<Self> {
        // A time too far away to be counted is no limit.
        Instant::now()
            .checked_add(timeout)
            .map(|at| Self { at, timeout })
    }

    fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// Waits for a call until the deadline.
    pub(crate) async fn apply<T>(
        deadline: Option<Self>,
        call: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, ClientError> {
        Self::apply_to_result(deadline, async {
            call.await.map_err(|status| {
                let timeout = deadline.map(|d| d.timeout);
                // Both ends watch the deadline, and the other end's verdict may come first.
                let late = matches!(status.code(), Code::Cancelled | Code::DeadlineExceeded)
                    && deadline.is_some_and(|d| d.left() < RETRY_INTERVAL);
                match timeout {
                    Some(timeout) if late => ClientError::TimedOut(timeout),
                    _ => ClientError::from_status(&status, timeout),
                }
            })
        })
        .await
    }

    /// Waits for a result until the deadline.
    pub(crate) async fn apply_to_result<T>(
        deadline: Option<Self>,
        result: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        match deadline {
            None => result.await,
            Some(Self { at, timeout }) => tokio::time::timeout_at(at, result)
                .await
                .unwrap_or(Err(ClientError::TimedOut(timeout))),
        }
    }
}

/// What every request carries as metadata.
#[derive(Debug, Clone, Default)]
pub(crate) struct Introduction {
    channel: Option<AsciiMetadataValue>,
    application: Option<AsciiMetadataValue>,
}

impl Introduction {
    fn new(options: &ConnectOptions) -> Self {
        Self {
            channel: options.channel.as_ref().and_then(|c| ascii(c.as_str())),
            application: options.application.as_deref().and_then(ascii),
        }
    }
}

/// Metadata is ASCII: any other character becomes a question mark.
fn ascii(text: &str) -> Option<AsciiMetadataValue> {
    let visible = |c: char| {
        if c.is_ascii_graphic() || c == ' ' {
            c
        } else {
            '?'
        }
    };
    let text: String = text.chars().map(visible).collect();
    AsciiMetadataValue::try_from(text).ok()
}

impl Interceptor for Introduction {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let metadata = request.metadata_mut();
        for (key, value) in [
            ("ferrymq-channel", &self.channel),
            ("ferrymq-app-name", &self.application),
        ] {
            if let Some(value) = value {
                metadata.insert(key, value.clone());
            }
        }
        Ok(request)
    }
}

type Service = InterceptedService<GrpcChannel, Introduction>;

/// A connection to a queue manager. Clones share it.
#[derive(Debug, Clone)]
pub struct Client {
    messaging: MessagingClient<Service>,
    admin: AdminClient<Service>,
    connection: Connection,
    deadline: Option<Deadline>,
}

impl Client {
    /// Connects to the first of the addresses that answers. Closed ports are tried again for as long as the options say.
    ///
    /// # Errors
    /// [`ClientError::Connect`] (2538, 2393, 2398), [`ClientError::NoAuthorities`] and [`ClientError::TlsFiles`] (2381,
    /// 2393).
    pub async fn connect(options: &ConnectOptions) -> Result<Self, ClientError> {
        let tls = if options.server.is_secure() {
            let files = options.tls.as_ref().ok_or(ClientError::NoAuthorities)?;
            Some(ClientTls::load(files, options.server_rule.clone())?)
        } else {
            None
        };
        let deadline = options.timeout.and_then(Deadline::after);
        let retries = Deadline::after(options.retry_for);
        loop {
            let time = deadline.map_or(CONNECT_TIMEOUT_DEFAULT, Deadline::left);
            let error = match connect(options.server.targets(), tls.as_ref(), time).await {
                Ok(connection) => return Ok(Self::over(connection, options, deadline)),
                Err(error) => ClientError::from(error),
            };
            let left =
                |deadline: Option<Deadline>| deadline.is_none_or(|d| d.left() > RETRY_INTERVAL);
            if !error.is_connection_refused() || !left(retries) || !left(deadline) {
                return Err(error);
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }

    fn over(connection: Connection, options: &ConnectOptions, deadline: Option<Deadline>) -> Self {
        let service = InterceptedService::new(connection.channel(), Introduction::new(options));
        let length_max = usize::try_from(MESSAGE_LENGTH_MAX)
            .unwrap_or(usize::MAX)
            .saturating_add(ENVELOPE_LENGTH_MAX);
        Self {
            messaging: MessagingClient::new(service.clone()).max_decoding_message_size(length_max),
            admin: AdminClient::new(service).max_decoding_message_size(length_max),
            connection,
            deadline,
        }
    }

    /// `host:port` of the address that answered.
    #[must_use]
    pub fn address(&self) -> String {
        self.connection.server().target.to_string()
    }

    /// Administration over this connection.
    #[must_use]
    pub fn admin(&self) -> Admin<'_> {
        Admin::new(self)
    }

    /// This client with a new limit for how long its calls may take together, counted from now; `None` is no limit.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.deadline = timeout.and_then(Deadline::after);
        self
    }

    pub(crate) fn messaging(&self) -> MessagingClient<Service> {
        self.messaging.clone()
    }

    pub(crate) fn administration(&self) -> AdminClient<Service> {
        self.admin.clone()
    }

    pub(crate) fn deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    /// A request that tells the queue manager how long the caller waits.
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(deadline) = self.deadline {
            request.set_timeout(deadline.left());
        }
        request
    }

    /// Waits for the answer of a call.
    pub(crate) async fn answer<T>(
        &self,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, ClientError> {
        let answer = Deadline::apply(self.deadline, call)
            .await
            .map(Response::into_inner);
        // A server that does not accept our certificate says so after our end of the handshake, to the first call.
        match (answer, self.connection.failure()) {
            (
                Err(ClientError::Broken(_)),
                Some(error @ (ConnectError::Tls { .. } | ConnectError::PeerRefused { .. })),
            ) => Err(error.into()),
            (answer, _) => answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed_port() -> ConnectOptions {
        // A port that was free a moment ago and that nobody listens on.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        ConnectOptions::new(url.parse().unwrap())
    }

    #[tokio::test]
    async fn a_closed_port_is_host_not_available() {
        let error = Client::connect(&closed_port()).await.unwrap_err();
        assert_eq!(error.reason().get(), 2538);
        assert!(error.is_connection_refused(), "{error:?}");
    }

    #[tokio::test]
    async fn a_closed_port_is_tried_until_it_opens() {
        let mut options = closed_port();
        options.retry_for = Duration::from_secs(60);
        let address = options.server.targets()[0].to_string();
        let connect = tokio::spawn(async move { Client::connect(&options).await });
        tokio::task::yield_now().await;
        let listener = tokio::net::TcpListener::bind(&address).await.unwrap();
        // It got through, which is all that this test is about: what answers is no queue manager and hangs up.
        let (socket, _) = listener.accept().await.unwrap();
        drop((socket, listener));
        match connect.await.unwrap() {
            Ok(client) => assert_eq!(client.address(), address),
            Err(error) => assert!(!error.is_connection_refused(), "{error:?}"),
        }
    }

    #[tokio::test]
    async fn an_https_address_without_an_authority_is_refused() {
        let options = ConnectOptions::new("https://127.0.0.1:1".parse().unwrap());
        let error = Client::connect(&options).await.unwrap_err();
        assert!(matches!(error, ClientError::NoAuthorities), "{error:?}");
    }

    #[test]
    fn metadata_is_ascii_whatever_the_name_of_the_program() {
        let value = ascii("b\u{fc}cher\n1 x").unwrap();
        assert_eq!(value.to_str().unwrap(), "b?cher?1 x");
    }
}
