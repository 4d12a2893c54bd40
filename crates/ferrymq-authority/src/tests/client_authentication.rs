use super::{SERIAL, name, pattern};
use ferrymq_objects::SslClientAuthentication;

use crate::{PeerCertificateNames, PeerRefusal, check_peer};

/// tls, SSLCAUTH, pattern, certificate, outcome: every cell.
#[test]
fn sslcauth_and_sslpeer_table() {
    use SslClientAuthentication::{Optional, Required};
    let subject = name(&[("O", "FerryMQ"), ("CN", "QM1")]);
    let certificate = PeerCertificateNames {
        subject: &subject,
        serial: SERIAL,
    };
    let good = pattern("CN=QM1");
    let bad = pattern("CN=QM2");
    let mismatch = PeerRefusal::Mismatch(bad.matches(&subject, SERIAL).unwrap_err());
    for authentication in [Required, Optional] {
        let required = authentication == Required;
        let without = if required {
            Err(PeerRefusal::CertificateRequired)
        } else {
            Ok(())
        };
        let without_but_pattern = if required {
            Err(PeerRefusal::CertificateRequired)
        } else {
            Err(PeerRefusal::PatternWithoutCertificate)
        };
        for (tls, pattern, certificate, expected) in [
            (true, None, None, without),
            (true, Some(&good), None, without_but_pattern),
            (true, None, Some(certificate), Ok(())),
            (true, Some(&good), Some(certificate), Ok(())),
            (true, Some(&bad), Some(certificate), Err(mismatch.clone())),
            (false, None, None, Ok(())),
            (false, None, Some(certificate), Ok(())),
            (
                false,
                Some(&good),
                None,
                Err(PeerRefusal::PatternWithoutTls),
            ),
            (
                false,
                Some(&good),
                Some(certificate),
                Err(PeerRefusal::PatternWithoutTls),
            ),
        ] {
            assert_eq!(
                check_peer(tls, authentication, pattern, certificate),
                expected,
                "tls {tls}, {authentication:?}, pattern {pattern:?}"
            );
        }
    }
}

#[test]
fn sec_k4_a_pattern_without_tls_does_not_pass() {
    let refusal = check_peer(
        false,
        SslClientAuthentication::Optional,
        Some(&pattern("CN=*")),
        None,
    )
    .unwrap_err();
    assert_eq!(refusal, PeerRefusal::PatternWithoutTls);
    assert_eq!(refusal.reason().get(), 2393);
}

#[test]
fn a_refusal_tells_the_operator_what_was_wanted_and_got() {
    let subject = name(&[("O", "Bank"), ("OU", "Trade"), ("OU", "Loans")]);
    let refusal = check_peer(
        true,
        SslClientAuthentication::Required,
        Some(&pattern("O=Bank,OU=Trade,OU=Pay*")),
        Some(PeerCertificateNames {
            subject: &subject,
            serial: SERIAL,
        }),
    )
    .unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "OU number 2 of the certificate does not match: wanted Pay*, got OU=Loans"
    );
    assert_eq!(refusal.reason().get(), 2398);
}
