//! Administration of broker users and permissions.

#![allow(unsafe_code, reason = "librdkafka's Rust client has no calls for users and rights")]

use std::ffi::CString;
use std::ptr::{null, null_mut};

use rdkafka::ClientConfig;
use rdkafka::admin::AdminClient;
use rdkafka::bindings::{self as native, rd_kafka_AclOperation_t as Native, rd_kafka_ResourceType_t as Kind};
use rdkafka::client::DefaultClientContext;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum May {
    Read,
    Write,
    Describe,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum With {
    Topic(String),
    Group(String),
    Transactions(String),
}

pub type Right = (May, With);

fn text(text: &str) -> CString {
    CString::new(text).expect("no zero byte")
}

fn client(brokers: &str) -> AdminClient<DefaultClientContext> {
    ClientConfig::new().set("bootstrap.servers", brokers).create().expect("a client")
}

fn ask(brokers: &str, send: impl FnOnce(*mut native::rd_kafka_t, *mut native::rd_kafka_queue_t)) {
    let admin = client(brokers);
    let client = admin.inner().native_ptr();
    // SAFETY: the client outlives the queue and the result event, which is read and destroyed here.
    unsafe {
        let queue = native::rd_kafka_queue_new(client);
        send(client, queue);
        let answer = native::rd_kafka_queue_poll(queue, 30_000);
        assert!(!answer.is_null(), "the broker does not answer");
        let error = native::rd_kafka_event_error(answer);
        assert_eq!(error, native::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR);
        let rights = native::rd_kafka_event_CreateAcls_result(answer);
        if !rights.is_null() {
            let mut number = 0;
            let given = native::rd_kafka_CreateAcls_result_acls(rights, &raw mut number);
            for at in 0..number {
                assert!(native::rd_kafka_acl_result_error(*given.add(at)).is_null(), "a right was not given");
            }
        }
        let users = native::rd_kafka_event_AlterUserScramCredentials_result(answer);
        if !users.is_null() {
            let mut number = 0;
            let told = native::rd_kafka_AlterUserScramCredentials_result_responses(users, &raw mut number);
            for at in 0..number {
                let error = native::rd_kafka_AlterUserScramCredentials_result_response_error(*told.add(at));
                let code = native::rd_kafka_error_code(error);
                assert_eq!(code, native::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR, "a password was not set");
            }
        }
        native::rd_kafka_event_destroy(answer);
        native::rd_kafka_queue_destroy(queue);
    }
}

pub fn grant(brokers: &str, user: &str, rights: &[Right]) {
    let principal = text(&format!("User:{user}"));
    let mut bindings: Vec<*mut native::rd_kafka_AclBinding_t> = Vec::new();
    for (may, with) in rights {
        let (kind, name, pattern) = match with {
            With::Topic(name) => (Kind::RD_KAFKA_RESOURCE_TOPIC, name, true),
            With::Group(name) => (Kind::RD_KAFKA_RESOURCE_GROUP, name, true),
            With::Transactions(name) => (Kind::RD_KAFKA_RESOURCE_TRANSACTIONAL_ID, name, false),
        };
        let pattern = if pattern {
            native::rd_kafka_ResourcePatternType_t::RD_KAFKA_RESOURCE_PATTERN_LITERAL
        } else {
            native::rd_kafka_ResourcePatternType_t::RD_KAFKA_RESOURCE_PATTERN_PREFIXED
        };
        let may = match may {
            May::Read => Native::RD_KAFKA_ACL_OPERATION_READ,
            May::Write => Native::RD_KAFKA_ACL_OPERATION_WRITE,
            May::Describe => Native::RD_KAFKA_ACL_OPERATION_DESCRIBE,
        };
        let allow = native::rd_kafka_AclPermissionType_t::RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW;
        let (name, host, mut words) = (text(name), text("*"), [0; 256]);
        // SAFETY: all texts outlive the call, which copies them.
        let binding = unsafe {
            native::rd_kafka_AclBinding_new(
                kind,
                name.as_ptr(),
                pattern,
                principal.as_ptr(),
                host.as_ptr(),
                may,
                allow,
                words.as_mut_ptr(),
                words.len(),
            )
        };
        assert!(!binding.is_null(), "no right that could be given");
        bindings.push(binding);
    }
    ask(brokers, |client, queue| {
        // SAFETY: the list has that length, and the call copies it.
        unsafe { native::rd_kafka_CreateAcls(client, bindings.as_mut_ptr(), bindings.len(), null(), queue) }
    });
    for binding in bindings {
        // SAFETY: this function owns the binding and does not use it afterwards.
        unsafe { native::rd_kafka_AclBinding_destroy(binding) };
    }
}

pub fn set_password(brokers: &str, user: &str, password: &str) {
    use native::rd_kafka_ScramMechanism_t::{RD_KAFKA_SCRAM_MECHANISM_SHA_256, RD_KAFKA_SCRAM_MECHANISM_SHA_512};
    let user = text(user);
    let one = |mechanism| {
        // SAFETY: the texts outlive the call, which copies them; the client generates the salt.
        unsafe {
            native::rd_kafka_UserScramCredentialUpsertion_new(
                user.as_ptr(),
                mechanism,
                4096,
                password.as_ptr(),
                password.len(),
                null_mut(),
                0,
            )
        }
    };
    // The broker accepts one change per user and request.
    for mut one in [RD_KAFKA_SCRAM_MECHANISM_SHA_256, RD_KAFKA_SCRAM_MECHANISM_SHA_512].map(one) {
        ask(brokers, |client, queue| {
            // SAFETY: a list of one element, which the call copies.
            unsafe { native::rd_kafka_AlterUserScramCredentials(client, &raw mut one, 1, null(), queue) }
        });
        // SAFETY: this function owns the alteration and does not use it afterwards.
        unsafe { native::rd_kafka_UserScramCredentialAlteration_destroy(one) };
    }
}
