//! Signatures: those of others, forged ones, and time.

use axum::http::{HeaderName, HeaderValue};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::json;

use super::digest::to_hex;
use super::*;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER: &str = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
const AT: i64 = 1_767_225_600;
const BODY: &[u8] = br#"{"text":"It leaks."}"#;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    headers
}

const fn at(seconds: i64) -> Timestamp {
    Timestamp(seconds * 1_000_000)
}

/// Verifies a request of Standard Webhooks that was signed at [`AT`].
fn verify(scheme: &StandardWebhooks, signature: &str, body: &[u8], now: i64) -> Result<(), SignatureError> {
    let headers = headers(&[(ID, "msg_1"), (TIMESTAMP, &AT.to_string()), (SIGNATURE, signature)]);
    scheme.verify(&SignedRequest::new(&headers, body, at(now)))
}

fn signed(secret: &str, body: &[u8]) -> String {
    sign(&[WebhookSecret::parse(secret).unwrap()], "msg_1", &AT.to_string(), body)
}

#[derive(Deserialize)]
struct Foreign {
    standard: Vec<Case>,
    slack: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    secret: String,
    #[serde(default)]
    id: String,
    timestamp: i64,
    body: String,
    signature: String,
}

/// Signatures of the libraries of others; the script beside it makes them.
fn foreign() -> Foreign {
    serde_json::from_str(include_str!("../../../tests/fixtures/foreign_signatures.json")).unwrap()
}

#[test]
fn signatures_are_those_of_the_reference_library() {
    let cases = foreign().standard;
    assert!(cases.len() >= 20);
    for Case { secret, id, timestamp, body, signature } in cases {
        let own = sign(&[WebhookSecret::parse(&secret).unwrap()], &id, &timestamp.to_string(), body.as_bytes());
        assert_eq!(own, signature, "{body}");

        let headers = headers(&[(ID, &id), (TIMESTAMP, &timestamp.to_string()), (SIGNATURE, &signature)]);
        let request = SignedRequest::new(&headers, body.as_bytes(), at(timestamp));
        let scheme = StandardWebhooks::new(&secret).unwrap();
        assert_eq!(scheme.verify(&request), Ok(()), "{body}");
        assert_eq!(scheme.id(&request, &Value::Null).unwrap(), id);
    }
}

#[test]
fn signatures_of_the_slack_library_are_accepted() {
    for Case { secret, timestamp, body, signature, .. } in foreign().slack {
        let headers =
            headers(&[("X-Slack-Request-Timestamp", &timestamp.to_string()), ("X-Slack-Signature", &signature)]);
        let slack = Slack::new(secret).unwrap();
        let verified = |body: &str, now| slack.verify(&SignedRequest::new(&headers, body.as_bytes(), at(now)));

        assert_eq!(verified(&body, timestamp + 300), Ok(()));
        assert_eq!(verified(&(body.clone() + " "), timestamp), Err(SignatureError::Mismatch));
        assert!(matches!(verified(&body, timestamp + 301), Err(SignatureError::TooOld { .. })));
        assert!(matches!(verified(&body, timestamp - 301), Err(SignatureError::TooNew { .. })));
    }
}

/// The example of Slack's documentation.
#[test]
fn documented_request_of_slack_is_accepted() {
    let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&\
                channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&\
                response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&\
                trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    let signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
    let headers = headers(&[
        ("X-Slack-Request-Timestamp", "1531420618"),
        ("X-Slack-Signature", signature),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ]);
    let request = SignedRequest::new(&headers, body.as_bytes(), at(1_531_420_618));
    let slack = Slack::new("8f742231b10e8888abcd99yyyzzz85a5").unwrap();

    assert_eq!(slack.verify(&request), Ok(()));
    let payload = slack.payload(&request).unwrap();
    assert_eq!(payload["command"], "/webhook-collect");
    assert_eq!(slack.id(&request, &payload).unwrap(), "398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c");
}

/// The example of GitHub's documentation.
#[test]
fn documented_signature_of_github_is_accepted() {
    let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let headers = headers(&[("X-Hub-Signature-256", signature), ("X-GitHub-Delivery", "72d3162e-cc78")]);
    let github = GitHub::new("It's a Secret to Everybody").unwrap();
    let request = |body| SignedRequest::new(&headers, body, at(AT));

    assert_eq!(github.verify(&request(b"Hello, World!")), Ok(()));
    assert_eq!(github.verify(&request(b"Hello, World?")), Err(SignatureError::Mismatch));
    assert_eq!(github.id(&request(b""), &Value::Null).unwrap(), "72d3162e-cc78");
}

#[test]
fn one_changed_byte_of_body_id_or_time_is_refused() {
    let scheme = StandardWebhooks::new(SECRET).unwrap();
    let signature = signed(SECRET, BODY);
    assert_eq!(verify(&scheme, &signature, BODY, AT), Ok(()));
    for place in 0..BODY.len() {
        let mut body = BODY.to_vec();
        body[place] ^= 1;
        assert_eq!(verify(&scheme, &signature, &body, AT), Err(SignatureError::Mismatch), "byte {place}");
    }
    for (id, seconds) in [("msg_2", AT), ("msg_1", AT + 1)] {
        let headers = headers(&[(ID, id), (TIMESTAMP, &seconds.to_string()), (SIGNATURE, &signature)]);
        let request = SignedRequest::new(&headers, BODY, at(AT));
        assert_eq!(scheme.verify(&request), Err(SignatureError::Mismatch), "{id} {seconds}");
    }
}

#[test]
fn times_outside_of_the_tolerance_are_refused_on_both_sides() {
    let scheme = StandardWebhooks::new(SECRET).unwrap();
    let signature = signed(SECRET, BODY);

    for now in [AT - 300, AT, AT + 300] {
        assert_eq!(verify(&scheme, &signature, BODY, now), Ok(()));
    }
    let old = verify(&scheme, &signature, BODY, AT + 301);
    assert_eq!(old, Err(SignatureError::TooOld { age: Duration::from_secs(301) }));
    let new = verify(&scheme, &signature, BODY, AT - 301);
    assert_eq!(new, Err(SignatureError::TooNew { ahead: Duration::from_secs(301) }));
}

#[test]
fn both_keys_of_a_rotation_are_accepted_in_any_order() {
    let rotating = StandardWebhooks::new(SECRET).unwrap().also(OTHER).unwrap();
    let (old, new) = (signed(SECRET, BODY), signed(OTHER, BODY));
    for signature in [old.clone(), new.clone(), format!("{old} {new}"), format!("v1a,AAAA v1,AAAA  {new}")] {
        assert_eq!(verify(&rotating, &signature, BODY, AT), Ok(()), "{signature}");
    }
    let only_new = StandardWebhooks::new(OTHER).unwrap();
    assert_eq!(verify(&only_new, &old, BODY, AT), Err(SignatureError::Mismatch));
    assert_eq!(verify(&only_new, &format!("{old} {new}"), BODY, AT), Ok(()));
}

#[test]
fn headers_must_be_present_once() {
    let (scheme, signature, seconds) = (StandardWebhooks::new(SECRET).unwrap(), signed(SECRET, BODY), AT.to_string());
    let all = [(ID, "msg_1"), (TIMESTAMP, seconds.as_str()), (SIGNATURE, signature.as_str())];
    let verified = |pairs: &[(&str, &str)]| scheme.verify(&SignedRequest::new(&headers(pairs), BODY, at(AT)));
    assert_eq!(verified(&all), Ok(()));
    for (index, (name, _)) in all.iter().enumerate() {
        let mut without = all.to_vec();
        let removed = without.remove(index);
        assert_eq!(verified(&without), Err(SignatureError::Header { name }), "without {name}");
        let twice = [all.as_slice(), &[removed]].concat();
        assert_eq!(verified(&twice), Err(SignatureError::Header { name }), "two of {name}");
    }
    for seconds in
        ["", "+1767225600", "-1", "1767225600.0", " 1767225600", "99999999999999999999", "9223372036854775807"]
    {
        let pairs = [(ID, "msg_1"), (TIMESTAMP, seconds), (SIGNATURE, signature.as_str())];
        assert_eq!(verified(&pairs), Err(SignatureError::Header { name: TIMESTAMP }), "{seconds}");
    }
}

#[test]
fn weak_or_malformed_secrets_are_refused_and_never_shown() {
    let secret = |bytes: usize| {
        use base64::Engine as _;
        format!("whsec_{}", base64::engine::general_purpose::STANDARD_NO_PAD.encode(vec![7; bytes]))
    };
    for bytes in [24, 25, 32, 64] {
        let parsed = WebhookSecret::parse(&secret(bytes)).unwrap();
        assert_eq!(WebhookSecret::parse(&parsed.reveal()), Ok(parsed));
    }
    for bytes in [0, 1, 23, 65] {
        assert_eq!(WebhookSecret::parse(&secret(bytes)), Err(SecretError::Length { bytes }));
    }
    assert_eq!(WebhookSecret::parse("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), Err(SecretError::Prefix));
    assert_eq!(WebhookSecret::parse("whsec_!"), Err(SecretError::Base64));
    assert_eq!(Slack::new("short").unwrap_err(), SecretError::TooShort { bytes: 5 });
    assert_eq!(GitHub::new("                    ").unwrap_err(), SecretError::TooShort { bytes: 0 });
    assert_ne!(WebhookSecret::generate().unwrap(), WebhookSecret::generate().unwrap());

    let (standard, slack) = (StandardWebhooks::new(SECRET).unwrap(), Slack::new("8f742231b10e8888abcd99yyyzzz85a5"));
    let shown = format!("{standard:?} {slack:?}");
    assert!(!shown.contains("MfKQ") && !shown.contains("8f74"), "{shown}");
}

#[test]
fn interactive_payloads_and_checks_of_slack_are_understood() {
    let slack = Slack::new("8f742231b10e8888abcd99yyyzzz85a5").unwrap();
    let form = headers(&[("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")]);
    let body = b"payload=%7B%22type%22%3A%22block_actions%22%2C%22trigger_id%22%3A%221.2%22%7D";
    let request = SignedRequest::new(&form, body, at(AT));
    let payload = slack.payload(&request).unwrap();

    assert_eq!(payload, json!({ "type": "block_actions", "trigger_id": "1.2" }));
    assert_eq!(slack.answer(&request, &payload), None);
    assert_eq!(slack.accepted(), Some(HookAnswer::default()));
    let event = json!({ "type": "event_callback", "event_id": "Ev1", "trigger_id": "1.2" });
    assert_eq!(slack.id(&request, &event).unwrap(), "Ev1");
    let check = json!({ "type": "url_verification", "challenge": "3eZbrw1aB" });
    assert_eq!(slack.answer(&request, &check), Some(HookAnswer { text: "3eZbrw1aB".to_owned() }));
    let broken = SignedRequest::new(&form, b"payload=%7B", at(AT));
    assert!(matches!(slack.payload(&broken), Err(PayloadError::Json { .. })));
    let rounded = SignedRequest::new(&form, b"payload=%7B%22a%22%3A%5B18446744073709551617%5D%7D", at(AT));
    assert!(matches!(slack.payload(&rounded), Err(PayloadError::Number(number)) if number.pointer == "/a/0"));
}

proptest! {
    /// A verified request is the signed one, and no header makes a scheme panic.
    #[test]
    fn no_header_or_body_makes_verification_panic(
        values in prop::collection::vec("[ -~]{0,40}", 3),
        prefix in prop::sample::select(vec!["", "v1,", "v1, v1,", "v0=", "sha256=", "v1,=="]),
        body in prop::collection::vec(any::<u8>(), 0..64),
        now in any::<i64>(),
    ) {
        let signature = format!("{prefix}{}", values[0]);
        let headers = headers(&[
            (ID, &values[1]), (TIMESTAMP, &values[2]), (SIGNATURE, &signature),
            ("x-slack-request-timestamp", &values[2]), ("x-slack-signature", &signature),
            ("x-hub-signature-256", &signature), ("content-type", "application/x-www-form-urlencoded"),
        ]);
        let request = SignedRequest::new(&headers, &body, Timestamp(now));
        let schemes: [&dyn SignatureScheme; 3] = [
            &StandardWebhooks::new(SECRET).unwrap(), &Slack::new(SECRET).unwrap(), &GitHub::new(SECRET).unwrap(),
        ];
        for scheme in schemes {
            prop_assert!(scheme.verify(&request).is_err());
            if let Ok(payload) = scheme.payload(&request) {
                _ = scheme.id(&request, &payload);
                _ = scheme.answer(&request, &payload);
            }
        }
        prop_assert_eq!(digest::from_hex(&to_hex(&[7; 32])), Some([7; 32]));
        _ = digest::from_hex(&values[0]);
    }
}
