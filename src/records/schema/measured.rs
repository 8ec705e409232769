//! The keys of an attribute that say in what it is measured: `unit`, `to`, `scale`, `offset`.

use super::attribute::Role;
use crate::records::canonical::Type;
use crate::records::keys::Keys;
use crate::records::units::Conversion;

/// The unit in which values leave, and what raw numbers are converted by.
pub(super) fn measured(keys: &mut Keys<'_>, kind: Option<Type>, role: Role) -> (Option<String>, Option<Conversion>) {
    let unit: Option<String> = keys.optional("unit");
    let to: Option<String> = keys.optional("to");
    let scale: Option<f64> = keys.optional("scale");
    let offset: Option<f64> = keys.optional("offset");
    let factors = scale.is_some() || offset.is_some();
    let numeric = matches!(kind, None | Some(Type::Integer | Type::Float));
    for (key, given) in [("to", to.is_some()), ("scale", scale.is_some()), ("offset", offset.is_some())] {
        if given && !numeric {
            keys.problem(key, "only integers and floats are converted: remove it");
        }
    }
    if (to.is_some() || factors) && role == Role::Subject {
        keys.problem("to", "who somebody is has no unit: remove it");
    }
    if to.is_some() && factors {
        keys.problem("to", "two units say by themselves how they are converted: remove scale and offset, or this key");
        return (to, None);
    }
    match (&unit, &to) {
        (Some(from), Some(into)) => {
            let conversion = Conversion::between(from, into);
            if conversion.is_none() {
                let message = "not known how to convert from `unit`: give scale and offset instead (docs/schema.md lists \
                               the units)";
                keys.problem("to", message);
            }
            return (to, conversion);
        }
        (None, Some(_)) => {
            keys.problem("unit", "the unit of the raw values is missing: add it");
            return (to, None);
        }
        _ => {}
    }
    if !factors {
        return (unit, None);
    }
    let conversion = Conversion { scale: scale.unwrap_or(1.0), offset: offset.unwrap_or(0.0) };
    if !conversion.scale.is_finite() || conversion.scale == 0.0 {
        keys.problem("scale", "neither 0 nor infinite: give a factor");
    }
    if !conversion.offset.is_finite() {
        keys.problem("offset", "not finite: give a number");
    }
    (unit, Some(conversion))
}
