//! What the tally costs and survives: limits, restarts, models that come later.

use crate::support::schemas::PERSON;
use crate::support::stand::{Fault, Stand, record};
use crate::{ILLNESS, QUASI};
use throng::config::{ModelKind, PrivacyModel};
use throng::daemon::engine::Settling;

const NOW: i64 = 1_700_000_000_000;

fn stand(settings: &str) -> Stand {
    Stand::new(&format!("name = \"limits\"\n{PERSON}{QUASI}{ILLNESS}"), settings)
}

/// Thirty records of batch `number`; people and illnesses change from batch to batch.
fn batch(number: usize) -> Vec<Option<Vec<u8>>> {
    let one = |i: usize| {
        let (person, age) = ((number * 7 + i * 3) % 97, 30 + (i * 5 + number) % 12);
        let city = ["Zug", "Bern", "Paris", "Lyon"][(i + number) % 4];
        let illness = ["flu", "cold", "hiv", "ebola"][(i * i + number + i / 7) % 4];
        record(format!(r#"{{"person":"p{person}","age":{age},"city":"{city}","illness":"{illness}"}}"#))
    };
    (0..30).map(one).collect()
}

fn withheld(stand: &Stand) -> usize {
    stand.sink.lines.iter().filter(|l| l.text.contains("\"illness\":\"*\"")).count()
}

const ENTROPY: &str =
    "[[privacy.model]]\nkind = \"l_diversity\"\ndiversity = \"entropy\"\nattribute = \"illness\"\nl = 1.9\n";
const DISTINCT: &str = "[[privacy.model]]\nkind = \"l_diversity\"\nattribute = \"illness\"\nl = 2\n";
const K3: &str = "[privacy]\nk = 3\nsupport_window = \"1h\"\n[batch]\nmax_records = 30\n";

#[test]
fn memory_stays_below_its_limit_and_what_finds_no_room_is_not_shown() {
    for (model, whole) in [(ENTROPY, true), (DISTINCT, false)] {
        let mut small = stand(&format!("{K3}[state]\nmax_shown_values = 120\n{model}"));
        let mut large = stand(&format!("{K3}{model}"));
        let mut most = (0, 0);
        for number in 0..60 {
            let now = NOW + 1000 * i64::try_from(number).expect("small");
            for stand in [&mut small, &mut large] {
                stand.offer(&batch(number), Settling::No, now, Fault::Nothing);
            }
            let entries = |stand: &Stand| stand.telemetry.exact().expect("a batch").shown_values;
            most = (most.0.max(entries(&small)), most.1.max(entries(&large)));
        }
        assert!(most.0 <= 120, "{} entries", most.0);
        let unreached = small.telemetry.render().contains("throng_limit_reached_total{limit=\"shown_values\"} 0");
        assert_eq!((most.1 > 120, unreached), (whole, !whole), "{most:?}");
        // Distinct diversity needs few entries a class, so that nothing is lost.
        assert_eq!(withheld(&small) > withheld(&large) + 200, whole, "{} {}", withheld(&small), withheld(&large));
        // An hour later nothing of it is left, and there is room again.
        let before = withheld(&small);
        for number in 0..70 {
            let now = NOW + 8_000_000 + 1000 * i64::from(number);
            small.offer(&batch(1), Settling::No, now, Fault::Nothing);
        }
        let last = small.telemetry.exact().expect("a batch");
        assert!(last.shown_values <= 120 && withheld(&small) - before < 70 * 30, "{last:?}");
    }
}

#[test]
fn a_restart_is_no_restart() {
    let close =
        "[[privacy.model]]\nkind = \"t_closeness\"\nattribute = \"illness\"\nt = 0.3\n[plan]\ninterval = \"5s\"\n";
    for model in [ENTROPY, DISTINCT, close] {
        let leave = |fault: fn(usize) -> Fault| {
            let mut stand = stand(&format!("{K3}{model}"));
            for number in 0..40 {
                let now = NOW + 700 * i64::try_from(number).expect("small");
                stand.offer(&batch(number), Settling::No, now, fault(number));
            }
            stand.sink.lines.iter().map(|l| (l.batch, l.text.clone())).collect::<Vec<_>>()
        };
        let undisturbed = leave(|_| Fault::Nothing);
        let shown = undisturbed.iter().filter(|(_, text)| !text.contains("\"illness\":\"*\"")).count();
        assert!(shown > 300, "{shown} of {} lines show something", undisturbed.len());
        assert_eq!(leave(|number| if number % 3 == 0 { Fault::Restart } else { Fault::Nothing }), undisturbed);
        assert_eq!(leave(|number| if number % 2 == 0 { Fault::LeaveAndDie } else { Fault::AbortAndDie }), undisturbed);
    }
}

#[test]
fn a_model_that_comes_later_waits_until_it_knows_the_past() {
    let entropy = PrivacyModel {
        kind: ModelKind::LDiversity,
        diversity: throng::config::Diversity::Entropy,
        attribute: Some("illness".into()),
        l: Some(1.9),
        ..PrivacyModel::default()
    };
    let mut stand = stand(K3);
    for number in 0..5 {
        stand.offer(&batch(number), Settling::No, NOW, Fault::Nothing);
    }
    let (lines, open) = (stand.sink.lines.len(), withheld(&stand));
    assert!(lines - open > 100, "no model withholds anything");
    // A state without a tally opens; classes may have shown what this start does not know of.
    stand.config.privacy.model.push(entropy);
    stand.engine().flush().expect("a state that can be written");
    stand.die();
    stand.offer(&batch(5), Settling::No, NOW + 3_600_000, Fault::Restart);
    stand.offer(&batch(6), Settling::No, NOW + 3_600_000, Fault::LeaveAndDie);
    assert_eq!(withheld(&stand) - open, stand.sink.lines.len() - lines, "everything is withheld");
    let (lines, closed) = (stand.sink.lines.len(), withheld(&stand));
    stand.offer(&batch(7), Settling::No, NOW + 3_600_001, Fault::Nothing);
    assert!(stand.sink.lines.len() - lines > withheld(&stand) - closed, "it has left the window");
    // Without the model for a while, and with it again: what left in between is unknown once more.
    let model = stand.config.privacy.model.pop().expect("the model");
    stand.engine().flush().expect("a state that can be written");
    stand.die();
    stand.offer(&batch(8), Settling::No, NOW + 3_600_002, Fault::Restart);
    // The last batch left without a tally, and its process died before it had noted that.
    stand.offer(&batch(8), Settling::No, NOW + 3_600_003, Fault::Nothing);
    stand.config.privacy.model.push(model);
    stand.die();
    let (lines, open) = (stand.sink.lines.len(), withheld(&stand));
    stand.offer(&batch(9), Settling::No, NOW + 7_200_003, Fault::Nothing);
    assert_eq!(withheld(&stand) - open, stand.sink.lines.len() - lines, "everything is withheld again");
    let (lines, closed) = (stand.sink.lines.len(), withheld(&stand));
    stand.offer(&batch(9), Settling::No, NOW + 7_200_004, Fault::Nothing);
    assert!(stand.sink.lines.len() - lines > withheld(&stand) - closed, "and no longer than it must be");
}
