use ferrymq_authority::PeerPattern;

use super::*;
use crate::{
    ClientFiles, ClientTls, ClientVerification, RevocationPolicy, ServerRule, TlsFiles,
    TlsIdentity, TlsReloader,
};

const NOW: Timestamp = Timestamp::from_millis(1_900_000_000_000);

struct Site {
    directory: tempfile::TempDir,
    authority: Authority,
}

impl Site {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let paths = CertificatePaths::in_directory(directory.path(), "ca");
        let subject = parse_subject("CN=Test CA,OU=Trust,OU=Tests,O=FerryMQ").unwrap();
        Authority::create(&subject, validity())
            .unwrap()
            .write(&paths)
            .unwrap();
        let authority = Authority::load(&paths).unwrap();
        Self {
            directory,
            authority,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn server(&self, name: &str) -> TlsFiles {
        let paths = CertificatePaths::in_directory(self.directory.path(), name);
        self.authority
            .issue_server(
                &parse_subject(&format!("CN={name},O=FerryMQ")).unwrap(),
                &["localhost".to_owned(), "127.0.0.1".to_owned()],
                validity(),
            )
            .unwrap()
            .write(&paths)
            .unwrap();
        TlsFiles {
            certificate: paths.certificate,
            key: paths.key,
            authorities: self.path("ca.crt"),
            revocation_lists: Vec::new(),
            revocation: RevocationPolicy::default(),
        }
    }
}

/// Wide enough for any clock that runs the tests.
fn validity() -> Validity {
    Validity {
        not_before: Timestamp::from_millis(1_700_000_000_000),
        not_after: Timestamp::from_millis(4_000_000_000_000),
    }
}

#[test]
fn a_certificate_says_what_was_asked_and_matches_its_subject_as_a_pattern() {
    let site = Site::new();
    let text = "CN=app,OU=Trade,OU=Payments,O=Bank \\+ Söhne,C=DE";
    let issued = site
        .authority
        .issue_client(&parse_subject(text).unwrap(), Validity::days(NOW, 10))
        .unwrap();
    let certificate = issued.certificate().unwrap();
    assert_eq!(certificate.subject.to_string(), text);
    assert_eq!(
        certificate.issuer.to_string(),
        "CN=Test CA,OU=Trust,OU=Tests,O=FerryMQ"
    );
    assert_eq!(
        certificate.not_before.as_millis(),
        NOW.as_millis() - 3_600_000
    );
    assert_eq!(
        certificate.not_after.as_millis(),
        NOW.as_millis() + 864_000_000
    );
    let pattern = PeerPattern::parse(text).unwrap();
    assert_eq!(
        pattern.matches(&certificate.subject, &certificate.serial),
        Ok(())
    );
    let serial = format!("SERIALNUMBER={}", certificate.serial_text());
    let pattern = PeerPattern::parse(&serial).unwrap();
    assert_eq!(
        pattern.matches(&certificate.subject, &certificate.serial),
        Ok(())
    );
}

#[test]
fn sec_p2_a_set_of_a_certificate_stays_a_set() {
    let site = Site::new();
    let issued = site
        .authority
        .issue_client(&parse_subject("UID=7+CN=app,O=Bank").unwrap(), validity())
        .unwrap();
    let subject = issued.certificate().unwrap().subject;
    let sets: Vec<usize> = subject.attributes.iter().map(|a| a.rdn).collect();
    assert_eq!(sets, [0, 1, 1]);
}

#[test]
fn bad_subjects_hosts_and_periods_are_refused() {
    let site = Site::new();
    for text in [
        "",
        "QM1",
        "CN=",
        "C=DEU",
        "CN=a,CN=b",
        "MAIL=ü@x",
        "C=ü1",
        "SERIALNUMBER=01",
    ] {
        assert!(parse_subject(text).is_err(), "{text:?}");
    }
    assert!(parse_subject(&format!("CN={}", "x".repeat(65))).is_err());
    let subject = parse_subject("CN=a").unwrap();
    for hosts in [vec![], vec!["a b".to_owned()], vec![String::new()]] {
        assert!(
            site.authority
                .issue_server(&subject, &hosts, validity())
                .is_err()
        );
    }
    let backwards = Validity {
        not_before: NOW,
        not_after: NOW,
    };
    assert!(site.authority.issue_client(&subject, backwards).is_err());
}

#[test]
fn nothing_is_overwritten() {
    let site = Site::new();
    let paths = CertificatePaths::in_directory(site.directory.path(), "ca");
    let before = std::fs::read(&paths.key).unwrap();
    let other = Authority::create(&parse_subject("CN=b").unwrap(), validity()).unwrap();
    assert!(matches!(other.write(&paths), Err(TlsError::Exists { .. })));
    assert_eq!(std::fs::read(&paths.key).unwrap(), before);
    // A certificate that is in the way leaves no key behind.
    let paths = CertificatePaths {
        certificate: site.path("ca.crt"),
        key: site.path("new.key"),
    };
    assert!(matches!(other.write(&paths), Err(TlsError::Exists { .. })));
    assert!(!paths.key.exists());
    let paths = CertificatePaths {
        certificate: site.path("missing/b.crt"),
        key: site.path("b.key"),
    };
    assert!(matches!(other.write(&paths), Err(TlsError::Write { .. })));
    assert!(!paths.key.exists());
}

#[cfg(unix)]
#[test]
fn sec_k5_keys_are_created_0600_and_wider_ones_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let site = Site::new();
    let files = site.server("QM1");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&files.key), 0o600);
    TlsIdentity::load(&files, ClientVerification::Optional).unwrap();
    for wide in [0o640, 0o604, 0o700, 0o620, 0o601] {
        std::fs::set_permissions(&files.key, std::fs::Permissions::from_mode(wide)).unwrap();
        let error = TlsIdentity::load(&files, ClientVerification::Optional).unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "{error}");
        assert_eq!(error.reason().get(), 2381);
    }
    std::fs::set_permissions(&files.key, std::fs::Permissions::from_mode(0o400)).unwrap();
    TlsIdentity::load(&files, ClientVerification::Optional).unwrap();
}

#[test]
fn sec_k5_no_error_or_debug_print_shows_a_key() {
    let site = Site::new();
    let files = site.server("QM1");
    let key = std::fs::read_to_string(&files.key).unwrap();
    let secret = key.lines().nth(1).unwrap().to_owned();
    let identity = TlsIdentity::load(&files, ClientVerification::Optional).unwrap();
    let client = identity.client(ServerRule::AnyTrusted).unwrap();
    let mut shown = format!("{identity:?} {client:?} {:?}", site.authority);
    for damaged in [
        key.replace("-----END", "-----ENDE"),
        key.replace(
            "-----BEGIN PRIVATE KEY-----",
            &format!("-----BEGIN {secret}"),
        ),
        key.replace(&secret, &format!("{secret}!")),
        format!("{key}{key}"),
    ] {
        std::fs::write(&files.key, damaged).unwrap();
        let error = TlsIdentity::load(&files, ClientVerification::Optional).unwrap_err();
        shown.push_str(&format!("{error} {error:?}"));
    }
    assert!(!shown.contains(&secret));
    let bytes = format!("{:?}", secret.as_bytes());
    assert!(!shown.contains(bytes.trim_matches(['[', ']'])));
}

#[test]
fn wrong_files_are_named_with_what_to_do() {
    let site = Site::new();
    let good = site.server("QM1");
    let other = site.server("QM2");
    let empty = site.path("empty.pem");
    std::fs::write(&empty, "nothing").unwrap();
    let missing = site.path("missing.pem");
    for (files, path, words) in [
        (
            TlsFiles {
                key: other.key.clone(),
                ..good.clone()
            },
            &good.certificate,
            "does not belong",
        ),
        (
            TlsFiles {
                certificate: empty.clone(),
                ..good.clone()
            },
            &empty,
            "no certificate in it",
        ),
        (
            TlsFiles {
                certificate: missing.clone(),
                ..good.clone()
            },
            &missing,
            "read",
        ),
        (
            TlsFiles {
                authorities: empty.clone(),
                ..good.clone()
            },
            &empty,
            "no certificate in it",
        ),
        (
            TlsFiles {
                authorities: good.certificate.clone(),
                ..good.clone()
            },
            &good.certificate,
            "not that of an authority",
        ),
        (
            TlsFiles {
                revocation_lists: vec![empty.clone()],
                ..good.clone()
            },
            &empty,
            "no revocation list in it",
        ),
        (
            TlsFiles {
                revocation_lists: vec![missing.clone()],
                ..good.clone()
            },
            &missing,
            "read",
        ),
    ] {
        let error = TlsIdentity::load(&files, ClientVerification::Required).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(words), "{text}");
        assert!(text.contains(&path.display().to_string()), "{text}");
    }
}

#[test]
fn a_reload_that_fails_keeps_what_was_in_force() {
    let site = Site::new();
    let files = site.server("QM1");
    let other = site.server("QM2");
    let reloader = TlsReloader::load(files.clone(), ClientVerification::Optional).unwrap();
    let first = reloader.current();
    std::fs::copy(&other.certificate, &files.certificate).unwrap();
    reloader.reload().unwrap_err();
    assert!(std::sync::Arc::ptr_eq(&reloader.current(), &first));
    std::fs::copy(&other.key, &files.key).unwrap();
    reloader.reload().unwrap();
    assert_eq!(
        reloader.current().certificate().subject.to_string(),
        "CN=QM2,O=FerryMQ"
    );
}

#[test]
fn sec_p10_a_chain_is_judged_again_by_the_lists_of_today() {
    let site = Site::new();
    let mut files = site.server("QM1");
    let client = site
        .authority
        .issue_client(&parse_subject("CN=app").unwrap(), validity())
        .unwrap()
        .certificate()
        .unwrap();
    let chain = [CertificateDer::from(client.der.clone())];
    let before = TlsIdentity::load(&files, ClientVerification::Optional).unwrap();
    before.verify_client_again(&chain).unwrap();
    let list = site
        .authority
        .revocation_list(&[client.serial], 1, validity())
        .unwrap();
    files.revocation_lists = vec![site.path("ca.crl")];
    std::fs::write(&files.revocation_lists[0], list).unwrap();
    let after = TlsIdentity::load(&files, ClientVerification::Optional).unwrap();
    assert_eq!(
        after.verify_client_again(&chain).unwrap_err(),
        rustls::Error::InvalidCertificate(rustls::CertificateError::Revoked)
    );
    assert!(after.verify_client_again(&[]).is_err());
}

#[test]
fn sec_k1_only_forward_secret_authenticated_suites_and_no_resumption() {
    let site = Site::new();
    let identity = TlsIdentity::load(&site.server("QM1"), ClientVerification::Required).unwrap();
    let server = identity.server_config();
    let client = ClientTls::load(
        &ClientFiles {
            certificate_and_key: None,
            authorities: site.path("ca.crt"),
            revocation_lists: Vec::new(),
            revocation: RevocationPolicy::default(),
        },
        ServerRule::HostName,
    )
    .unwrap()
    .config();
    for provider in [server.crypto_provider(), client.crypto_provider()] {
        for suite in &provider.cipher_suites {
            let name = format!("{:?}", suite.suite());
            assert!(
                name.starts_with("TLS13_") || name.starts_with("TLS_ECDHE_"),
                "{name}"
            );
            assert!(name.contains("GCM") || name.contains("POLY1305"), "{name}");
        }
    }
    assert!(!server.session_storage.can_cache());
    assert_eq!(server.send_tls13_tickets, 0);
    assert!(!server.ticketer.enabled());
    assert_eq!(server.max_early_data_size, 0);
    assert!(!client.enable_early_data);
    assert_eq!(server.alpn_protocols, [b"h2".to_vec()]);
    assert_eq!(client.alpn_protocols, [b"h2".to_vec()]);
}
