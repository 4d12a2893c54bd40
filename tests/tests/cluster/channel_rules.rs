//! Channel authentication records under real TLS: who may connect, and as whom.

use ferrymq_client::{Client, wire};
use ferrymq_tests::cluster::Nodes;

/// As which user a message of the application arrives, or why it may not connect.
async fn user(nodes: &Nodes) -> Result<String, u32> {
    let client = Client::connect(&nodes.application(1)).await;
    let client = client.unwrap_or_else(|error| panic!("the connection itself: {error}"));
    let put = wire::PutRequest {
        queue: "IN".into(),
        message: Some(wire::Message::default()),
        ..wire::PutRequest::default()
    };
    client.put(put).await.map_err(|e| e.reason().get())?;
    let get = wire::GetRequest {
        queue: "IN".into(),
        ..wire::GetRequest::default()
    };
    let got = client.get(get).await.map_err(|e| e.reason().get())?;
    let descriptor = got.and_then(|got| got.descriptor);
    Ok(descriptor.unwrap_or_default().user_identifier)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chlauth_maps_and_refuses_applications_and_queue_managers() {
    let mut nodes = Nodes::prepare(2, false).await;
    for number in [1, 2] {
        nodes.start(number);
    }
    for number in [1, 2] {
        nodes.wait_up(number).await;
    }
    nodes.link(2, 1).await;
    // As the certificate says.
    assert_eq!(user(&nodes).await.as_deref(), Ok("app"));
    for (command, expected) in [
        (
            "SET CHLAUTH('APP.*') TYPE(SSLPEERMAP) SSLPEER('CN=app,O=FerryMQ') MCAUSER('orders')",
            Ok("orders"),
        ),
        (
            "SET CHLAUTH('*') TYPE(BLOCKUSER) USERLIST('orders')",
            Err(2035),
        ),
        (
            "SET CHLAUTH('APP.SVRCONN') TYPE(BLOCKUSER) USERLIST('nobody')",
            Ok("orders"),
        ),
        (
            "SET CHLAUTH('APP.SVRCONN') TYPE(ADDRESSMAP) ADDRESS('*') USERSRC(NOACCESS)",
            Err(2035),
        ),
        (
            "SET CHLAUTH('APP.SVRCONN') TYPE(ADDRESSMAP) ADDRESS('*') USERSRC(NOACCESS) WARN(YES) ACTION(REPLACE)",
            Ok("app"),
        ),
        (
            "SET CHLAUTH('*') TYPE(BLOCKADDR) ADDRLIST('127.0.0.*')",
            Err(2035),
        ),
        ("ALTER QMGR CHLAUTH(DISABLED)", Ok("app")),
        ("ALTER QMGR CHLAUTH(ENABLED)", Err(2035)),
        (
            "SET CHLAUTH('*') TYPE(BLOCKUSER) ACTION(REMOVEALL)",
            Err(2035),
        ),
        (
            "SET CHLAUTH('*') TYPE(BLOCKADDR) ACTION(REMOVEALL)",
            Ok("app"),
        ),
    ] {
        nodes.define(1, command).await;
        assert_eq!(user(&nodes).await, expected.map(str::to_owned), "{command}");
    }
    let checked = nodes
        .define(1, "DISPLAY CHLAUTH('APP.X') MATCH(RUNCHECK) ADDRESS('192.0.2.7') CLNTUSER('app') SSLPEER('CN=app,O=FerryMQ')")
        .await;
    assert!(checked.contains("CHLAUTH(APP.*)"), "{checked}");
    assert!(
        checked.contains("AMQ9783I: Channel will run using MCAUSER('orders')."),
        "{checked}"
    );
    let bad = nodes
        .mqsc(
            1,
            1,
            "SET CHLAUTH('X') TYPE(ADDRESSMAP) ADDRESS('host.example.net') USERSRC(NOACCESS)",
        )
        .await;
    assert!(bad.unwrap_err().contains("host names are not looked up"));

    // A queue manager that a record refuses stays out, and its messages wait.
    nodes
        .define(
            1,
            "SET CHLAUTH('QM2.*') TYPE(QMGRMAP) QMNAME('QM*') USERSRC(NOACCESS)",
        )
        .await;
    let failed = nodes.mqsc(2, 2, "PING CHANNEL(QM2.TO.QM1)").await;
    assert!(failed.is_err(), "{failed:?}");
    nodes
        .define(
            1,
            "SET CHLAUTH('QM2.*') TYPE(QMGRMAP) QMNAME('QM*') ACTION(REMOVE)",
        )
        .await;
    nodes.define(2, "PING CHANNEL(QM2.TO.QM1)").await;

    // The records are definitions as others are: a restart keeps them.
    nodes.kill(1);
    nodes.start(1);
    nodes.wait_up(1).await;
    let shown = nodes
        .define(1, "DISPLAY CHLAUTH('APP.*') TYPE(SSLPEERMAP) ALL")
        .await;
    assert!(shown.contains("MCAUSER(orders)"), "{shown}");
}
