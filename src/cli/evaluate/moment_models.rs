//! Linear models from moments.

use super::report::three_decimals;
use crate::cli::loaded_release::aligned_table;
use crate::cli::text_format::{counted, number, people};
use throng_eval::series::{MissingMoment, ModelCoefficient, MomentModel};

/// Column heads of [`fit_rows`].
pub const FIT_HEADS: [&str; 3] = ["linear model", "R² on the records before", "AUC on the records before"];

/// Column heads of [`coefficient_rows`].
pub const COEFFICIENT_HEADS: [&str; 5] =
    ["coefficient", "before", "from moments", "standard error before", "difference ÷ standard error"];

/// Rows of fits: original, from moments, and their ratio.
pub fn fit_rows(of: &MomentModel) -> Vec<Vec<String>> {
    let figure = |value: Option<f64>| value.map_or_else(String::new, three_decimals);
    let row = |name: &str, r2: Option<f64>, auc: Option<f64>| vec![name.to_owned(), figure(r2), figure(auc)];
    let [from_moments, before] = of.auc.map_or([None; 2], |areas| areas.map(Some));
    vec![
        row("least squares on the records before", of.r2_original, before),
        row("from moments", of.r2_moments, from_moments),
        row("from moments ÷ before", of.ratio(), from_moments.zip(before).map(|(one, other)| one / other)),
    ]
}

/// Rows of coefficients; `spelled` formats names.
pub fn coefficient_rows(of: &MomentModel, spelled: impl Fn(&str) -> String) -> Vec<Vec<String>> {
    let row = |of: &ModelCoefficient| {
        let figures = [of.original, of.moments, of.standard_error].map(|value| format!("{value:.4e}"));
        let difference = three_decimals((of.moments - of.original).abs() / of.standard_error);
        [spelled(&of.signal)].into_iter().chain(figures).chain([difference]).collect()
    };
    of.coefficients.iter().map(row).collect()
}

/// Describes origin, largest difference, and missing moments.
pub fn model_sentences(of: &MomentModel, spelled: impl Fn(&str) -> String) -> Vec<String> {
    let mut sentences = vec![format!(
        "{} by the other signals of {}: moments of {} of cohort and epoch ({}, counted once per epoch), {} before",
        spelled(&of.target),
        spelled(&of.series),
        counted(of.parts, "pair"),
        people(of.people),
        counted(of.rows, "complete row"),
    )];
    if let Some((signal, difference)) = of.largest_difference() {
        sentences.push(format!("largest difference: {difference:.2} standard errors ({})", spelled(signal)));
    } else {
        sentences.push("no model: no cohort has moments of all signals, or signals determine each other".to_owned());
    }
    let missing = |of: &MissingMoment| {
        let names: Vec<String> = of.signals.iter().map(|name| spelled(name)).collect();
        format!("{} (in {})", names.join(" × "), number(of.parts))
    };
    if !of.missing.is_empty() {
        let names: Vec<String> = of.missing.iter().map(missing).collect();
        sentences.push(format!(
            "moments missing from cohorts and epochs, because all values are equal or few people dominate: {}",
            names.join(", ")
        ));
    }
    sentences
}

/// Formats the models as text.
pub fn format_moment_models(models: &[MomentModel]) -> String {
    let mut text = String::new();
    for model in models {
        let plain = str::to_owned;
        let [first, rest @ ..] = &model_sentences(model, plain)[..] else { continue };
        text += &format!("\n{first}\n{}", aligned_table(&FIT_HEADS, &fit_rows(model)));
        if !model.coefficients.is_empty() {
            text += &aligned_table(&COEFFICIENT_HEADS, &coefficient_rows(model, plain));
        }
        rest.iter().for_each(|sentence| text += &format!("{sentence}\n"));
    }
    text
}
