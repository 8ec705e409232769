use super::*;
use crate::values::json::unquoted;
use proptest::prelude::*;

fn typing(kind: Type, rounding: Rounding) -> Typing {
    let missing = Missing::new(None, matches!(kind, Type::Integer | Type::Float));
    Typing {
        attribute: "a".into(),
        kind,
        rounding,
        missing,
        spelling: Spelling::default(),
        dates: Dates::Iso,
        decimal_comma: false,
        zone: None,
        conversion: None,
    }
}

fn canonical(typing: &Typing, token: Token<'_>) -> Result<String, CellError> {
    let mut out = String::from("left over");
    Ok(match typing.canonical(token, &mut out)? {
        Canonical::Absent => "ABSENT".into(),
        Canonical::Null => "NULL".into(),
        Canonical::Value => out,
    })
}

fn step(size: f64) -> Rounding {
    Rounding::step(size).unwrap()
}

#[test]
fn partial_dates_are_read_where_dates_are_rounded_to_them() {
    let read = |unit: Option<Unit>, text| {
        let t = typing(Type::Date, unit.map_or(Rounding::None, Rounding::Unit));
        let mut out = String::new();
        t.canonical(Token::Text(text), &mut out).map(|_| out).map_err(|error| error.to_string())
    };
    for (unit, text, value) in [
        (Unit::Year, "1974", Some("\"1974-01-01\"")),
        (Unit::Year, "1974-12", Some("\"1974-01-01\"")),
        (Unit::Year, "1974-12-25", Some("\"1974-01-01\"")),
        (Unit::Quarter, "1974-12", Some("\"1974-10-01\"")),
        (Unit::Month, "1974-12", Some("\"1974-12-01\"")),
        (Unit::Month, "1974", None),
        (Unit::Week, "1974-12", None),
        (Unit::Year, "1974-13", None),
        (Unit::Year, "0000", None),
        (Unit::Year, "19745", None),
    ] {
        assert_eq!(read(Some(unit), text).ok().as_deref(), value, "{unit:?} {text}");
    }
    for (unit, text, remedy) in [
        (None, "1974-12", "round = \"month\""),
        (None, "1974", "round = \"year\""),
        (Some(Unit::Week), "1974-12", "round = \"month\""),
        (Some(Unit::Month), "1974", "round = \"year\""),
    ] {
        assert!(read(unit, text).is_err_and(|error| error.contains(remedy)), "{unit:?} {text}");
    }
}

#[test]
fn decimal_commas_are_read_and_points_then_refused() {
    let t = Typing { decimal_comma: true, ..typing(Type::Float, Rounding::None) };
    let read = |token| {
        let mut out = String::new();
        t.canonical(token, &mut out).map(|_| out).ok()
    };
    for (token, value) in [
        (Token::Untyped("72,5"), Some("72.5")),
        (Token::Text(" -0,25 "), Some("-0.25")),
        (Token::Untyped("72"), Some("72")),
        (Token::Number("72.5"), Some("72.5")),
        (Token::Untyped("1.234,5"), None),
        (Token::Untyped("1.234"), None),
        (Token::Untyped("1,2,3"), None),
        (Token::Untyped(","), None),
    ] {
        assert_eq!(read(token).as_deref(), value, "{token:?}");
    }
    // What has left has a point.
    let mut out = String::new();
    assert!(t.converted_already().canonical(Token::Untyped("72.5"), &mut out).is_ok() && out == "72.5");
}

#[test]
fn integers() {
    let t = typing(Type::Integer, Rounding::None);
    for (spelled, want) in [
        ("5", "5"),
        ("5.0", "5"),
        (" 5 ", "5"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("5e3", "5000"),
        ("-9223372036854775808", "-9223372036854775808"),
    ] {
        assert_eq!(canonical(&t, Token::Untyped(spelled)).unwrap(), want, "{spelled}");
        assert_eq!(canonical(&t, Token::Number(spelled)).unwrap(), want, "{spelled}");
    }
    for bad in ["5.5", "x", "NaN", "inf", "1e999", "1e30", "9223372036854775808", "1 2"] {
        assert!(canonical(&t, Token::Untyped(bad)).is_err(), "{bad}");
    }
    assert!(canonical(&t, Token::Bool(true)).is_err());
    assert!(canonical(&t, Token::Structure("[1]")).is_err());
    let t = typing(Type::Integer, step(5.0));
    for (spelled, want) in [("2", "0"), ("3", "5"), ("-2", "0"), ("-3", "-5"), ("12", "10"), ("13", "15")] {
        assert_eq!(canonical(&t, Token::Number(spelled)).unwrap(), want);
    }
    assert!(canonical(&t, Token::Number("9223372036854775807")).is_ok());
    assert!(canonical(&typing(Type::Integer, step(10.0)), Token::Number("9223372036854775807")).is_err());
    let t = typing(Type::Integer, Rounding::Digits(2));
    assert_eq!(canonical(&t, Token::Number("12499")).unwrap(), "12000");
    assert_eq!(canonical(&t, Token::Number("-995")).unwrap(), "-1000");
    assert_eq!(canonical(&t, Token::Number("0")).unwrap(), "0");
}

#[test]
fn floats() {
    let t = typing(Type::Float, Rounding::None);
    for (spelled, want) in
        [("5.0", "5"), ("1e2", "100"), ("-0.0", "0"), ("0.1", "0.1"), ("1e300", "1e300"), ("1e-7", "1e-7")]
    {
        assert_eq!(canonical(&t, Token::Number(spelled)).unwrap(), want, "{spelled}");
    }
    for bad in ["NaN", "-inf", "Infinity", "1e999", ""] {
        assert!(canonical(&t, Token::Text(bad)).is_err(), "{bad}");
    }
    let t = typing(Type::Float, step(0.1));
    for (spelled, want) in
        [("0.30000000000000004", "0.3"), ("-0.04", "0"), ("0.05", "0.1"), ("71.70156485820955", "71.7")]
    {
        assert_eq!(canonical(&t, Token::Number(spelled)).unwrap(), want);
    }
    assert_eq!(canonical(&typing(Type::Float, step(2.5)), Token::Number("6.3")).unwrap(), "7.5");
    assert_eq!(canonical(&typing(Type::Float, Rounding::Digits(3)), Token::Number("0.0012345")).unwrap(), "0.00123");
    assert_eq!(
        canonical(&typing(Type::Float, Rounding::Digits(1)), Token::Number("1.7976931348623157e308")).unwrap(),
        "1.7976931348623157e308"
    );
}

#[test]
fn booleans_and_strings() {
    let t = typing(Type::Boolean, Rounding::None);
    for yes in ["true", "True", "1", "1.0"] {
        assert_eq!(canonical(&t, Token::Untyped(yes)).unwrap(), "true");
    }
    assert_eq!(canonical(&t, Token::Bool(false)).unwrap(), "false");
    assert!(canonical(&t, Token::Untyped("2")).is_err());
    let t = typing(Type::String, Rounding::None);
    assert_eq!(canonical(&t, Token::Text("*")).unwrap(), r#""\\*""#);
    assert_eq!(canonical(&t, Token::Text(r"\*")).unwrap(), r#""\\\\*""#);
    assert_eq!(canonical(&t, Token::Text("a*")).unwrap(), r#""a*""#);
    assert_eq!(canonical(&t, Token::Text("")).unwrap(), r#""""#);
    assert_eq!(canonical(&t, Token::Untyped("")).unwrap(), "NULL");
    assert_eq!(canonical(&t, Token::Text("null")).unwrap(), r#""null""#);
    assert_eq!(
        canonical(&t, Token::Structure(r#"{ "b": [1, 2.50], "a": null }"#)).unwrap(),
        r#""{\"a\":null,\"b\":[1,2.5]}""#
    );
    assert!(canonical(&t, Token::Structure("[1")).is_err());
    assert!(canonical(&t, Token::Text(&"x".repeat(1024))).is_ok());
    assert!(canonical(&t, Token::Text(&"x".repeat(1025))).is_err());
}

#[test]
fn moments_and_places() {
    let t = typing(Type::Timestamp, Rounding::Unit(Unit::Hour));
    assert_eq!(canonical(&t, Token::Text("2021-05-24T14:35:00+02:00")).unwrap(), r#""2021-05-24T12:00:00Z""#);
    for guess in [Token::Number("1621859700000"), Token::Number("20240512"), Token::Untyped("2024")] {
        assert!(canonical(&t, guess).is_err(), "a number is no date unless the schema says so");
    }
    let since = Typing { dates: Dates::Epoch(crate::values::dates::Epoch::Milliseconds), ..t };
    assert_eq!(canonical(&since, Token::Number("1621859700000")).unwrap(), r#""2021-05-24T12:00:00Z""#);
    assert!(canonical(&since, Token::Text("2021-05-24")).is_err());
    let t = typing(Type::Date, Rounding::None);
    assert_eq!(canonical(&t, Token::Untyped("2021-05-24 23:00:00")).unwrap(), r#""2021-05-24""#);
    assert!(canonical(&t, Token::Text("yesterday")).is_err());
    let t = typing(Type::Coordinates, step(0.01));
    for token in [
        Token::Text("47.3712, 8.5401"),
        Token::Structure("[47.3712,8.5401]"),
        Token::Structure(r#"{"lon":8.5401,"lat":47.3712}"#),
    ] {
        assert_eq!(canonical(&t, token).unwrap(), r#""47.37,8.54""#);
    }
    assert!(canonical(&t, Token::Text("91,0")).is_err());
    assert!(canonical(&t, Token::Structure("[1,2,3]")).is_err());
}

#[test]
fn missing_spellings() {
    let mut t = typing(Type::Integer, step(5.0));
    t.missing = Missing::new(Some(vec!["NA".into(), "-1".into()]), true);
    assert_eq!(canonical(&t, Token::Number("-1.0")).unwrap(), "NULL");
    assert_eq!(canonical(&t, Token::Untyped("NA")).unwrap(), "NULL");
    // A real zero, to which −1 would be rounded, is there.
    assert_eq!(canonical(&t, Token::Number("0")).unwrap(), "0");
    assert!(canonical(&t, Token::Untyped("")).is_err());
}

#[test]
fn errors_carry_no_values() {
    let error = canonical(&typing(Type::Integer, Rounding::None), Token::Text("canary-7781")).unwrap_err();
    assert!(!error.to_string().contains("canary"), "{error}");
    assert!(!format!("{error:?}").contains("canary"));
}

proptest! {
    #[test]
    fn strings_are_injective_and_valid_json(a in r"[\\*a\x00-\x1f]{0,4}|\PC{0,6}", b in r"[\\*a\x00-\x1f]{0,4}|\PC{0,6}") {
        let t = typing(Type::String, Rounding::None);
        let (ca, cb) = (canonical(&t, Token::Text(&a)).unwrap(), canonical(&t, Token::Text(&b)).unwrap());
        prop_assert_eq!(a == b, ca == cb);
        prop_assert_ne!(&ca, "\"*\"");
        let read = unquoted(&ca).unwrap();
        let sound = read == a || read == format!("\\{a}");
        prop_assert!(sound);
    }

    #[test]
    fn rounding_is_idempotent_and_near(x in -1e7_f64..1e7, which in 0_usize..5) {
        let (rounding, step) = [(Rounding::None, 0.0), (step(0.5), 0.5), (step(0.1), 0.1), (step(7.0), 7.0), (Rounding::Digits(4), 1e3)][which];
        let t = typing(Type::Float, rounding);
        let once = canonical(&t, Token::Number(&x.to_string())).unwrap();
        prop_assert_eq!(&canonical(&t, Token::Number(&once)).unwrap(), &once);
        prop_assert!((once.parse::<f64>().unwrap() - x).abs() <= step / 2.0 + 1e-6);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&once).is_ok());
    }

    /// Spelled anew, a subject stays who it is, and white space, invisible characters and zeros make nobody new.
    #[test]
    fn a_subject_is_one_however_it_is_spelled(text in r"[0-9]{1,4}(\.0{0,2})?|[a-zéA-Z \u{e9}]{0,8}|\PC{0,10}", zeros in 0_usize..3) {
        let t = Typing { spelling: Spelling::OF_SUBJECTS, ..typing(Type::String, Rounding::None) };
        if let Ok(once) = canonical(&t, Token::Text(&text)) {
            let plain = unquoted(&once).unwrap_or_default();
            if !plain.starts_with('\\') {
                prop_assert_eq!(canonical(&t, Token::Text(&plain)).unwrap(), once.clone());
            }
            for (before, after) in [(" ", ""), ("\u{feff}", "\u{a0}"), ("\u{200b}", "\t\n")] {
                let spelled = format!("{before}{text}{after}");
                prop_assert_eq!(canonical(&t, Token::Text(&spelled)).unwrap(), once.clone());
            }
            if text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() {
                let number = format!("{}{text}", "0".repeat(zeros));
                prop_assert_eq!(canonical(&t, Token::Text(&number)).unwrap(), once.clone());
                prop_assert_eq!(canonical(&t, Token::Number(&format!("{}e0", text.trim_start_matches('0').to_owned() + if text.bytes().all(|b| b == b'0') { "0" } else { "" }))).unwrap(), once);
            }
        }
    }

    #[test]
    fn any_token_is_taken_or_refused(text in r"\PC{0,20}", number in any::<f64>()) {
        let kinds = [Type::Integer, Type::Float, Type::Boolean, Type::String, Type::Date, Type::Timestamp, Type::Coordinates];
        for kind in kinds {
            let t = typing(kind, Rounding::None);
            let spelled = number.to_string();
            for token in [Token::Text(&text), Token::Untyped(&text), Token::Structure(&text), Token::Number(&spelled), Token::Bool(true)] {
                if let Ok(json) = canonical(&t, token) {
                    let special = json == "NULL" || serde_json::from_str::<serde_json::Value>(&json).is_ok();
                    prop_assert!(special, "{} is not JSON", json);
                }
            }
        }
    }
}
