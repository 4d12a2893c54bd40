//! Who gets in, and what is said to whom, over real sockets.

mod common;

use common::{Server, Site, call, call_refused, pattern, validity};
use ferrymq_tls::authority::{Validity, parse_subject};
use ferrymq_tls::{ClientVerification, ServerRule};
use ferrymq_transport::{ConnectError, RefusalCause, ServerLimits, TlsFault};
use ferrymq_types::Timestamp;
use rustls::{AlertDescription, CertificateError};

#[tokio::test]
async fn both_ends_learn_the_certificate_of_the_other() {
    let site = Site::new("CN=Test CA,O=FerryMQ");
    let server = Server::tls(
        site.server_files(),
        ClientVerification::Required,
        ServerLimits::default(),
    );
    let own = site.write("app", &site.client("CN=app,OU=Trade,OU=Payments,O=Bank"));
    let tls = site.client_tls(Some(&own), ServerRule::HostName);
    let connection = server.connect(Some(&tls)).await.unwrap();
    call(&connection).await.unwrap();

    let peer = server.last_peer();
    assert!(peer.tls);
    let certificate = peer.certificate.unwrap();
    assert_eq!(
        certificate.subject.to_string(),
        "CN=app,OU=Trade,OU=Payments,O=Bank"
    );
    assert_eq!(certificate.issuer.to_string(), "CN=Test CA,O=FerryMQ");
    assert_eq!(peer.chain.len(), 1);
    assert!(peer.address.ip().is_loopback());

    let seen = connection.server();
    let certificate = seen.certificate.as_ref().unwrap();
    assert_eq!(
        certificate.subject.to_string(),
        "CN=QM1,OU=Queue Managers,O=FerryMQ"
    );
    assert_eq!(seen.target, server.target());
    assert!(seen.cipher_suite.is_some());
    assert!(connection.failure().is_none());
    server.handle.stop().await.unwrap();
}

#[tokio::test]
async fn sec_p12_no_client_certificate_is_seen_as_none() {
    let site = Site::new("CN=Test CA");
    let server = Server::tls(
        site.server_files(),
        ClientVerification::Optional,
        ServerLimits::default(),
    );
    let tls = site.client_tls(None, ServerRule::HostName);
    let connection = server.connect(Some(&tls)).await.unwrap();
    call(&connection).await.unwrap();
    let peer = server.last_peer();
    assert!(peer.tls);
    assert!(peer.certificate.is_none());
    assert!(peer.chain.is_empty());
}

#[tokio::test]
async fn sec_p12_a_required_certificate_that_is_missing_refuses() {
    let site = Site::new("CN=Test CA");
    let mut server = Server::tls(
        site.server_files(),
        ClientVerification::Required,
        ServerLimits::default(),
    );
    let tls = site.client_tls(None, ServerRule::HostName);
    let error = call_refused(&server, Some(&tls)).await;
    assert_eq!(
        error.alert(),
        Some(AlertDescription::CertificateRequired),
        "{error:?}"
    );
    assert_eq!(error.reason().get(), 2393);
    let refusal = server.refusal().await;
    assert!(
        matches!(
            refusal.cause,
            RefusalCause::Tls(TlsFault::Protocol(rustls::Error::NoCertificatesPresented))
        ),
        "{refusal:?}"
    );
    assert!(server.peers.lock().unwrap().is_empty());
}

#[tokio::test]
async fn sec_k3_a_server_with_another_name_is_refused_and_named() {
    let site = Site::new("CN=Test CA");
    let server = Server::tls(
        site.server_files(),
        ClientVerification::Optional,
        ServerLimits::default(),
    );
    let rule = ServerRule::Name(pattern("CN=QM2,O=FerryMQ"));
    let error = server
        .connect(Some(&site.client_tls(None, rule)))
        .await
        .unwrap_err();
    assert_eq!(error.reason().get(), 2398);
    let ConnectError::PeerRefused {
        got,
        wanted,
        mismatch,
        ..
    } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!(got, "CN=QM1,OU=Queue Managers,O=FerryMQ");
    assert_eq!(wanted, "CN=QM2,O=FerryMQ");
    assert_eq!(mismatch.attribute.keyword(), "CN");

    let rule = ServerRule::Name(pattern("CN=QM1,OU=Queue*"));
    let connection = server
        .connect(Some(&site.client_tls(None, rule)))
        .await
        .unwrap();
    call(&connection).await.unwrap();
}

#[tokio::test]
async fn sec_k3_a_host_that_the_certificate_does_not_name_is_refused_only_if_asked() {
    let site = Site::new("CN=Test CA");
    let mut files = site.server_files();
    let elsewhere = site.write(
        "elsewhere",
        &site
            .authority
            .issue_server(
                &parse_subject("CN=QM1").unwrap(),
                &["elsewhere.example".to_owned()],
                validity(),
            )
            .unwrap(),
    );
    files.certificate = elsewhere.certificate;
    files.key = elsewhere.key;
    let server = Server::tls(files, ClientVerification::Optional, ServerLimits::default());
    for rule in [
        ServerRule::HostName,
        ServerRule::HostNameAndName(pattern("CN=QM1")),
    ] {
        let tls = site.client_tls(None, rule);
        let error = server.connect(Some(&tls)).await.unwrap_err();
        assert!(
            matches!(
                error,
                ConnectError::Tls {
                    source: TlsFault::Protocol(rustls::Error::InvalidCertificate(
                        CertificateError::NotValidForNameContext { .. }
                    )),
                    ..
                }
            ),
            "{error:?}"
        );
    }
    for rule in [ServerRule::AnyTrusted, ServerRule::Name(pattern("CN=QM1"))] {
        let tls = site.client_tls(None, rule);
        call(&server.connect(Some(&tls)).await.unwrap())
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn sec_p10_another_authority_expiry_and_a_server_only_usage_refuse() {
    let site = Site::new("CN=Test CA");
    // The same name, another key.
    let stranger = Site::new("CN=Test CA");
    let mut server = Server::tls(
        site.server_files(),
        ClientVerification::Optional,
        ServerLimits::default(),
    );
    let foreign = stranger.write("app", &stranger.client("CN=app"));
    let expired = site.write(
        "expired",
        &site
            .authority
            .issue_client(
                &parse_subject("CN=app").unwrap(),
                Validity {
                    not_before: Timestamp::from_millis(1_600_000_000_000),
                    not_after: Timestamp::from_millis(1_700_000_000_000),
                },
            )
            .unwrap(),
    );
    let early = site.write(
        "early",
        &site
            .authority
            .issue_client(
                &parse_subject("CN=app").unwrap(),
                Validity {
                    not_before: Timestamp::from_millis(3_900_000_000_000),
                    not_after: Timestamp::from_millis(4_000_000_000_000),
                },
            )
            .unwrap(),
    );
    for (own, alerts) in [
        (
            &foreign,
            &[AlertDescription::UnknownCA, AlertDescription::DecryptError][..],
        ),
        (&expired, &[AlertDescription::CertificateExpired]),
        (
            &early,
            &[
                AlertDescription::CertificateExpired,
                AlertDescription::BadCertificate,
                AlertDescription::CertificateUnknown,
            ],
        ),
    ] {
        let error = call_refused(
            &server,
            Some(&site.client_tls(Some(own), ServerRule::HostName)),
        )
        .await;
        let alert = error.alert().unwrap_or_else(|| panic!("{error:?}"));
        assert!(alerts.contains(&alert), "{alert:?}, expected {alerts:?}");
        assert!(matches!(
            server.refusal().await.cause,
            RefusalCause::Tls(TlsFault::Protocol(rustls::Error::InvalidCertificate(_)))
        ));
    }
    // A client's certificate is not that of a server.
    let mut files = site.server_files();
    let client = site.write("client", &site.client("CN=QM1"));
    files.certificate = client.certificate;
    files.key = client.key;
    let impostor = Server::tls(files, ClientVerification::Optional, ServerLimits::default());
    let error = impostor
        .connect(Some(&site.client_tls(None, ServerRule::AnyTrusted)))
        .await
        .unwrap_err();
    assert_eq!(error.reason().get(), 2393, "{error:?}");
    // Nobody of them made a call.
    assert!(server.peers.lock().unwrap().is_empty());
}

#[tokio::test]
async fn sec_p10_a_revoked_client_is_refused_once_the_list_is_loaded() {
    let site = Site::new("CN=Test CA,OU=A,OU=B");
    let issued = site.client("CN=app");
    let revoked = site.write("app", &issued);
    let other = site.write("other", &site.client("CN=other"));
    let mut files = site.server_files();
    files.revocation_lists = vec![site.path("ca.crl")];
    let list = |serials: &[Vec<u8>], number| {
        let pem = site
            .authority
            .revocation_list(serials, number, validity())
            .unwrap();
        std::fs::write(site.path("ca.crl"), pem).unwrap();
    };
    list(&[], 1);
    let reloader = std::sync::Arc::new(
        ferrymq_tls::TlsReloader::load(files, ClientVerification::Required).unwrap(),
    );
    let server = Server::start(
        ferrymq_transport::ListenerSecurity::Tls(std::sync::Arc::clone(&reloader)),
        ServerLimits::default(),
    );
    let tls = site.client_tls(Some(&revoked), ServerRule::HostName);
    let before = server.connect(Some(&tls)).await.unwrap();
    call(&before).await.unwrap();
    let peer = server.last_peer();

    list(&[issued.certificate().unwrap().serial], 2);
    reloader.reload().unwrap();
    let error = call_refused(&server, Some(&tls)).await;
    assert_eq!(
        error.alert(),
        Some(AlertDescription::CertificateRevoked),
        "{error:?}"
    );
    let tls = site.client_tls(Some(&other), ServerRule::HostName);
    call(&server.connect(Some(&tls)).await.unwrap())
        .await
        .unwrap();

    // The connection from before goes on until somebody looks again.
    call(&before).await.unwrap();
    let identity = reloader.current();
    identity.verify_client_again(&peer.chain).unwrap_err();
    peer.disconnect();
    call(&before).await.unwrap_err();
}

#[tokio::test]
async fn sec_k2_plain_text_on_a_tls_port_and_tls_on_a_plain_port_are_refused() {
    let site = Site::new("CN=Test CA");
    let mut server = Server::tls(
        site.server_files(),
        ClientVerification::Optional,
        ServerLimits::default(),
    );
    let connection = server.connect(None).await.unwrap();
    call(&connection).await.unwrap_err();
    let refusal = server.refusal().await;
    assert!(
        matches!(
            refusal.cause,
            RefusalCause::Tls(TlsFault::Protocol(rustls::Error::InvalidMessage(_)))
        ),
        "{refusal:?}"
    );
    assert!(server.peers.lock().unwrap().is_empty());

    let plain = Server::start(
        ferrymq_transport::ListenerSecurity::PlainLoopback,
        ServerLimits::default(),
    );
    let tls = site.client_tls(None, ServerRule::AnyTrusted);
    let error = plain.connect(Some(&tls)).await.unwrap_err();
    assert!(matches!(error, ConnectError::Tls { .. }), "{error:?}");
    assert!(plain.peers.lock().unwrap().is_empty());
}
