//! A site with an authority, servers and clients on free ports of this machine.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test binary has its own copy and uses a part of it"
)]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ferrymq_authority::PeerPattern;
use ferrymq_tls::authority::{Authority, CertificatePaths, Issued, Validity, parse_subject};
use ferrymq_tls::{
    ClientFiles, ClientTls, ClientVerification, RevocationPolicy, ServerRule, TlsFiles, TlsReloader,
};
use ferrymq_transport::{
    ConnectError, Connection, Listener, ListenerHandle, ListenerSecurity, PeerInfo, Refusal,
    ServerLimits, Target, connect, server_builder,
};
use ferrymq_types::Timestamp;
use tokio::sync::mpsc;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

/// Long enough for any machine: a test that waits so long has failed.
pub const LONG: Duration = Duration::from_secs(60);

pub struct Site {
    pub directory: tempfile::TempDir,
    pub authority: Authority,
}

/// Wide enough for any clock that runs the tests.
pub fn validity() -> Validity {
    Validity {
        not_before: Timestamp::from_millis(1_700_000_000_000),
        not_after: Timestamp::from_millis(4_000_000_000_000),
    }
}

impl Site {
    pub fn new(authority_name: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let paths = CertificatePaths::in_directory(directory.path(), "ca");
        Authority::create(&parse_subject(authority_name).unwrap(), validity())
            .unwrap()
            .write(&paths)
            .unwrap();
        let authority = Authority::load(&paths).unwrap();
        Self {
            directory,
            authority,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes `issued` under a file name and returns its paths.
    pub fn write(&self, name: &str, issued: &Issued) -> CertificatePaths {
        let paths = CertificatePaths::in_directory(self.directory.path(), name);
        issued.write(&paths).unwrap();
        paths
    }

    pub fn server_files(&self) -> TlsFiles {
        let paths = CertificatePaths::in_directory(self.directory.path(), "server");
        if !paths.key.exists() {
            let issued = self
                .authority
                .issue_server(
                    &parse_subject("CN=QM1,OU=Queue Managers,O=FerryMQ").unwrap(),
                    &["localhost".to_owned(), "127.0.0.1".to_owned()],
                    validity(),
                )
                .unwrap();
            issued.write(&paths).unwrap();
        }
        TlsFiles {
            certificate: paths.certificate,
            key: paths.key,
            authorities: self.path("ca.crt"),
            revocation_lists: Vec::new(),
            revocation: RevocationPolicy::default(),
        }
    }

    pub fn client(&self, subject: &str) -> Issued {
        self.authority
            .issue_client(&parse_subject(subject).unwrap(), validity())
            .unwrap()
    }

    /// A client with a certificate of this site, or with none.
    pub fn client_tls(&self, own: Option<&CertificatePaths>, rule: ServerRule) -> ClientTls {
        ClientTls::load(
            &ClientFiles {
                certificate_and_key: own.map(|own| (own.certificate.clone(), own.key.clone())),
                authorities: self.path("ca.crt"),
                revocation_lists: Vec::new(),
                revocation: RevocationPolicy::default(),
            },
            rule,
        )
        .unwrap()
    }
}

pub fn pattern(text: &str) -> PeerPattern {
    PeerPattern::parse(text).unwrap()
}

/// A listener with a health service that remembers its peers.
pub struct Server {
    pub handle: ListenerHandle,
    pub peers: Arc<Mutex<Vec<PeerInfo>>>,
    pub refusals: mpsc::Receiver<Refusal>,
}

impl Server {
    pub fn start(security: ListenerSecurity, limits: ServerLimits) -> Self {
        let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let (sender, refusals) = mpsc::channel(100);
        let router_limits = limits.clone();
        let listener = Listener::bind(address, security, limits)
            .unwrap()
            .with_refusals(sender);
        let peers: Arc<Mutex<Vec<PeerInfo>>> = Arc::default();
        let seen = Arc::clone(&peers);
        let service = tonic::service::interceptor::InterceptedService::new(
            HealthServer::new(HealthService::from_health_reporter(HealthReporter::new())),
            move |request: tonic::Request<()>| {
                let info = request.extensions().get::<PeerInfo>().cloned();
                seen.lock()
                    .unwrap()
                    .push(info.expect("every connection has a peer"));
                Ok(request)
            },
        );
        let handle = listener.start(server_builder(&router_limits).add_service(service));
        Self {
            handle,
            peers,
            refusals,
        }
    }

    pub fn tls(files: TlsFiles, verification: ClientVerification, limits: ServerLimits) -> Self {
        let reloader = Arc::new(TlsReloader::load(files, verification).unwrap());
        Self::start(ListenerSecurity::Tls(reloader), limits)
    }

    pub fn target(&self) -> Target {
        self.handle.local_addr().into()
    }

    pub async fn connect(&self, tls: Option<&ClientTls>) -> Result<Connection, ConnectError> {
        connect(&[self.target()], tls, LONG).await
    }

    pub fn last_peer(&self) -> PeerInfo {
        self.peers
            .lock()
            .unwrap()
            .last()
            .cloned()
            .expect("somebody called")
    }

    pub async fn refusal(&mut self) -> Refusal {
        tokio::time::timeout(LONG, self.refusals.recv())
            .await
            .expect("a refusal is reported")
            .expect("the listener runs")
    }
}

/// One call.
pub async fn call(connection: &Connection) -> Result<(), tonic::Status> {
    HealthClient::new(connection.channel())
        .check(HealthCheckRequest::default())
        .await
        .map(|_| ())
}

/// Connects and calls; the reason if either is refused.
pub async fn call_refused(server: &Server, tls: Option<&ClientTls>) -> ConnectError {
    let connection = match server.connect(tls).await {
        Err(error) => return error,
        Ok(connection) => connection,
    };
    call(&connection).await.expect_err("the call is refused");
    connection.failure().expect("the socket says why")
}
