use super::*;
use crate::values::json::unquoted;
use proptest::prelude::*;

fn typing(kind: AttributeType, rounding: Rounding) -> ValueTyping {
    let missing = MissingSpellings::new(None, matches!(kind, AttributeType::Integer | AttributeType::Float));
    ValueTyping {
        attribute: "a".into(),
        kind,
        rounding,
        missing,
        spelling: Spelling::default(),
        dates: DateFormats::Iso,
        decimal_comma: false,
        zone: None,
        conversion: None,
    }
}

fn canonical(typing: &ValueTyping, token: RawToken<'_>) -> Result<String, CellError> {
    let mut out = String::from("left over");
    Ok(match typing.canonical(token, &mut out)? {
        CanonicalKind::Absent => "ABSENT".into(),
        CanonicalKind::Null => "NULL".into(),
        CanonicalKind::Value => out,
    })
}

fn step(size: f64) -> Rounding {
    Rounding::step(size).unwrap()
}

#[test]
fn partial_date_needs_rounding_to_its_unit() {
    let read = |unit: Option<CalendarUnit>, text| {
        let t = typing(AttributeType::Date, unit.map_or(Rounding::None, Rounding::Unit));
        let mut out = String::new();
        t.canonical(RawToken::Text(text), &mut out).map(|_| out).map_err(|error| error.to_string())
    };
    for (unit, text, value) in [
        (CalendarUnit::Year, "1974", Some("\"1974-01-01\"")),
        (CalendarUnit::Year, "1974-12", Some("\"1974-01-01\"")),
        (CalendarUnit::Year, "1974-12-25", Some("\"1974-01-01\"")),
        (CalendarUnit::Quarter, "1974-12", Some("\"1974-10-01\"")),
        (CalendarUnit::Month, "1974-12", Some("\"1974-12-01\"")),
        (CalendarUnit::Month, "1974", None),
        (CalendarUnit::Week, "1974-12", None),
        (CalendarUnit::Year, "1974-13", None),
        (CalendarUnit::Year, "0000", None),
        (CalendarUnit::Year, "19745", None),
    ] {
        assert_eq!(read(Some(unit), text).ok().as_deref(), value, "{unit:?} {text}");
    }
    for (unit, text, remedy) in [
        (None, "1974-12", "round = \"month\""),
        (None, "1974", "round = \"year\""),
        (Some(CalendarUnit::Week), "1974-12", "round = \"month\""),
        (Some(CalendarUnit::Month), "1974", "round = \"year\""),
    ] {
        assert!(read(unit, text).is_err_and(|error| error.contains(remedy)), "{unit:?} {text}");
    }
}

#[test]
fn decimal_comma_setting_refuses_points() {
    let t = ValueTyping { decimal_comma: true, ..typing(AttributeType::Float, Rounding::None) };
    let read = |token| {
        let mut out = String::new();
        t.canonical(token, &mut out).map(|_| out).ok()
    };
    for (token, value) in [
        (RawToken::Untyped("72,5"), Some("72.5")),
        (RawToken::Text(" -0,25 "), Some("-0.25")),
        (RawToken::Untyped("72"), Some("72")),
        (RawToken::Number("72.5"), Some("72.5")),
        (RawToken::Untyped("1.234,5"), None),
        (RawToken::Untyped("1.234"), None),
        (RawToken::Untyped("1,2,3"), None),
        (RawToken::Untyped(","), None),
    ] {
        assert_eq!(read(token).as_deref(), value, "{token:?}");
    }
    let mut out = String::new();
    assert!(t.without_conversion().canonical(RawToken::Untyped("72.5"), &mut out).is_ok() && out == "72.5");
}

#[test]
fn integers_are_parsed_and_rounded() {
    let t = typing(AttributeType::Integer, Rounding::None);
    for (spelled, want) in [
        ("5", "5"),
        ("5.0", "5"),
        (" 5 ", "5"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("5e3", "5000"),
        ("-9223372036854775808", "-9223372036854775808"),
    ] {
        assert_eq!(canonical(&t, RawToken::Untyped(spelled)).unwrap(), want, "{spelled}");
        assert_eq!(canonical(&t, RawToken::Number(spelled)).unwrap(), want, "{spelled}");
    }
    for bad in ["5.5", "x", "NaN", "inf", "1e999", "1e30", "9223372036854775808", "1 2"] {
        assert!(canonical(&t, RawToken::Untyped(bad)).is_err(), "{bad}");
    }
    assert!(canonical(&t, RawToken::Bool(true)).is_err());
    assert!(canonical(&t, RawToken::Structure("[1]")).is_err());
    let t = typing(AttributeType::Integer, step(5.0));
    for (spelled, want) in [("2", "0"), ("3", "5"), ("-2", "0"), ("-3", "-5"), ("12", "10"), ("13", "15")] {
        assert_eq!(canonical(&t, RawToken::Number(spelled)).unwrap(), want);
    }
    assert!(canonical(&t, RawToken::Number("9223372036854775807")).is_ok());
    assert!(canonical(&typing(AttributeType::Integer, step(10.0)), RawToken::Number("9223372036854775807")).is_err());
    let t = typing(AttributeType::Integer, Rounding::Digits(2));
    assert_eq!(canonical(&t, RawToken::Number("12499")).unwrap(), "12000");
    assert_eq!(canonical(&t, RawToken::Number("-995")).unwrap(), "-1000");
    assert_eq!(canonical(&t, RawToken::Number("0")).unwrap(), "0");
}

#[test]
fn floats_are_parsed_and_rounded() {
    let t = typing(AttributeType::Float, Rounding::None);
    for (spelled, want) in
        [("5.0", "5"), ("1e2", "100"), ("-0.0", "0"), ("0.1", "0.1"), ("1e300", "1e300"), ("1e-7", "1e-7")]
    {
        assert_eq!(canonical(&t, RawToken::Number(spelled)).unwrap(), want, "{spelled}");
    }
    for bad in ["NaN", "-inf", "Infinity", "1e999", ""] {
        assert!(canonical(&t, RawToken::Text(bad)).is_err(), "{bad}");
    }
    let t = typing(AttributeType::Float, step(0.1));
    for (spelled, want) in
        [("0.30000000000000004", "0.3"), ("-0.04", "0"), ("0.05", "0.1"), ("71.70156485820955", "71.7")]
    {
        assert_eq!(canonical(&t, RawToken::Number(spelled)).unwrap(), want);
    }
    assert_eq!(canonical(&typing(AttributeType::Float, step(2.5)), RawToken::Number("6.3")).unwrap(), "7.5");
    assert_eq!(
        canonical(&typing(AttributeType::Float, Rounding::Digits(3)), RawToken::Number("0.0012345")).unwrap(),
        "0.00123"
    );
    assert_eq!(
        canonical(&typing(AttributeType::Float, Rounding::Digits(1)), RawToken::Number("1.7976931348623157e308"))
            .unwrap(),
        "1.7976931348623157e308"
    );
}

#[test]
fn booleans_and_strings_have_one_text() {
    let t = typing(AttributeType::Boolean, Rounding::None);
    for yes in ["true", "True", "1", "1.0"] {
        assert_eq!(canonical(&t, RawToken::Untyped(yes)).unwrap(), "true");
    }
    assert_eq!(canonical(&t, RawToken::Bool(false)).unwrap(), "false");
    assert!(canonical(&t, RawToken::Untyped("2")).is_err());
    let t = typing(AttributeType::String, Rounding::None);
    assert_eq!(canonical(&t, RawToken::Text("*")).unwrap(), r#""\\*""#);
    assert_eq!(canonical(&t, RawToken::Text(r"\*")).unwrap(), r#""\\\\*""#);
    assert_eq!(canonical(&t, RawToken::Text("a*")).unwrap(), r#""a*""#);
    assert_eq!(canonical(&t, RawToken::Text("")).unwrap(), r#""""#);
    assert_eq!(canonical(&t, RawToken::Untyped("")).unwrap(), "NULL");
    assert_eq!(canonical(&t, RawToken::Text("null")).unwrap(), r#""null""#);
    assert_eq!(
        canonical(&t, RawToken::Structure(r#"{ "b": [1, 2.50], "a": null }"#)).unwrap(),
        r#""{\"a\":null,\"b\":[1,2.5]}""#
    );
    assert!(canonical(&t, RawToken::Structure("[1")).is_err());
    assert!(canonical(&t, RawToken::Text(&"x".repeat(1024))).is_ok());
    assert!(canonical(&t, RawToken::Text(&"x".repeat(1025))).is_err());
}

#[test]
fn times_and_coordinates_are_rounded() {
    let t = typing(AttributeType::Timestamp, Rounding::Unit(CalendarUnit::Hour));
    assert_eq!(canonical(&t, RawToken::Text("2021-05-24T14:35:00+02:00")).unwrap(), r#""2021-05-24T12:00:00Z""#);
    for guess in [RawToken::Number("1621859700000"), RawToken::Number("20240512"), RawToken::Untyped("2024")] {
        assert!(canonical(&t, guess).is_err(), "a number is no date unless the schema says so");
    }
    let since = ValueTyping { dates: DateFormats::Epoch(crate::values::date_formats::EpochUnit::Milliseconds), ..t };
    assert_eq!(canonical(&since, RawToken::Number("1621859700000")).unwrap(), r#""2021-05-24T12:00:00Z""#);
    assert!(canonical(&since, RawToken::Text("2021-05-24")).is_err());
    let t = typing(AttributeType::Date, Rounding::None);
    assert_eq!(canonical(&t, RawToken::Untyped("2021-05-24 23:00:00")).unwrap(), r#""2021-05-24""#);
    assert!(canonical(&t, RawToken::Text("yesterday")).is_err());
    let t = typing(AttributeType::Coordinates, step(0.01));
    for token in [
        RawToken::Text("47.3712, 8.5401"),
        RawToken::Structure("[47.3712,8.5401]"),
        RawToken::Structure(r#"{"lon":8.5401,"lat":47.3712}"#),
    ] {
        assert_eq!(canonical(&t, token).unwrap(), r#""47.37,8.54""#);
    }
    assert!(canonical(&t, RawToken::Text("91,0")).is_err());
    assert!(canonical(&t, RawToken::Structure("[1,2,3]")).is_err());
}

#[test]
fn missing_spellings_match_before_rounding() {
    let mut t = typing(AttributeType::Integer, step(5.0));
    t.missing = MissingSpellings::new(Some(vec!["NA".into(), "-1".into()]), true);
    assert_eq!(canonical(&t, RawToken::Number("-1.0")).unwrap(), "NULL");
    assert_eq!(canonical(&t, RawToken::Untyped("NA")).unwrap(), "NULL");
    // Rounding of −1 is not a real zero.
    assert_eq!(canonical(&t, RawToken::Number("0")).unwrap(), "0");
    assert!(canonical(&t, RawToken::Untyped("")).is_err());
}

#[test]
fn cell_error_does_not_contain_the_value() {
    let error = canonical(&typing(AttributeType::Integer, Rounding::None), RawToken::Text("canary-7781")).unwrap_err();
    assert!(!error.to_string().contains("canary"), "{error}");
    assert!(!format!("{error:?}").contains("canary"));
}

proptest! {
    #[test]
    fn strings_are_injective_and_valid_json(a in r"[\\*a\x00-\x1f]{0,4}|\PC{0,6}", b in r"[\\*a\x00-\x1f]{0,4}|\PC{0,6}") {
        let t = typing(AttributeType::String, Rounding::None);
        let (ca, cb) = (canonical(&t, RawToken::Text(&a)).unwrap(), canonical(&t, RawToken::Text(&b)).unwrap());
        prop_assert_eq!(a == b, ca == cb);
        prop_assert_ne!(&ca, "\"*\"");
        let read = unquoted(&ca).unwrap();
        let sound = read == a || read == format!("\\{a}");
        prop_assert!(sound);
    }

    #[test]
    fn rounding_is_idempotent_within_half_a_step(x in -1e7_f64..1e7, which in 0_usize..5) {
        let (rounding, step) = [(Rounding::None, 0.0), (step(0.5), 0.5), (step(0.1), 0.1), (step(7.0), 7.0), (Rounding::Digits(4), 1e3)][which];
        let t = typing(AttributeType::Float, rounding);
        let once = canonical(&t, RawToken::Number(&x.to_string())).unwrap();
        prop_assert_eq!(&canonical(&t, RawToken::Number(&once)).unwrap(), &once);
        prop_assert!((once.parse::<f64>().unwrap() - x).abs() <= step / 2.0 + 1e-6);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&once).is_ok());
    }

    #[test]
    fn subject_spellings_give_one_text(text in r"[0-9]{1,4}(\.0{0,2})?|[a-zéA-Z \u{e9}]{0,8}|\PC{0,10}", zeros in 0_usize..3) {
        let t = ValueTyping { spelling: Spelling::SUBJECT_DEFAULT, ..typing(AttributeType::String, Rounding::None) };
        if let Ok(once) = canonical(&t, RawToken::Text(&text)) {
            let plain = unquoted(&once).unwrap_or_default();
            if !plain.starts_with('\\') {
                prop_assert_eq!(canonical(&t, RawToken::Text(&plain)).unwrap(), once.clone());
            }
            for (before, after) in [(" ", ""), ("\u{feff}", "\u{a0}"), ("\u{200b}", "\t\n")] {
                let spelled = format!("{before}{text}{after}");
                prop_assert_eq!(canonical(&t, RawToken::Text(&spelled)).unwrap(), once.clone());
            }
            if text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() {
                let number = format!("{}{text}", "0".repeat(zeros));
                prop_assert_eq!(canonical(&t, RawToken::Text(&number)).unwrap(), once.clone());
                prop_assert_eq!(canonical(&t, RawToken::Number(&format!("{}e0", text.trim_start_matches('0').to_owned() + if text.bytes().all(|b| b == b'0') { "0" } else { "" }))).unwrap(), once);
            }
        }
    }

    #[test]
    fn any_token_gives_json_or_an_error(text in r"\PC{0,20}", number in any::<f64>()) {
        let kinds = [AttributeType::Integer, AttributeType::Float, AttributeType::Boolean, AttributeType::String, AttributeType::Date, AttributeType::Timestamp, AttributeType::Coordinates];
        for kind in kinds {
            let t = typing(kind, Rounding::None);
            let spelled = number.to_string();
            for token in [RawToken::Text(&text), RawToken::Untyped(&text), RawToken::Structure(&text), RawToken::Number(&spelled), RawToken::Bool(true)] {
                if let Ok(json) = canonical(&t, token) {
                    let special = json == "NULL" || serde_json::from_str::<serde_json::Value>(&json).is_ok();
                    prop_assert!(special, "{} is not JSON", json);
                }
            }
        }
    }
}
