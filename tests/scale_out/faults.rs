//! Fault injection: one fault per round, drawn from a seed.

use crate::scale_out::feeder::Feeder;
use crate::scale_out::fleet::Fleet;
use crate::support::crash_points;
use crate::support::daemon::Dice;
use std::time::{Duration, Instant};

/// Member that joins and leaves.
const GUEST: usize = 4;
/// Milliseconds.
const SHIFTS: [i64; 3] = [30_000, -30_000, 0];
const DYING: Duration = Duration::from_secs(8);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Kill,
    Die,
    Rolling,
    Guest,
    Clock,
    Bounce,
}

/// All kinds occur before any repeats beyond its share.
pub struct Faults {
    dice: Dice,
    deck: Vec<Fault>,
    round: usize,
}

impl Faults {
    pub fn new(seed: u64) -> Self {
        Self { dice: Dice::new(seed), deck: Vec::new(), round: 0 }
    }

    pub fn begin(fleet: &mut Fleet) {
        (0..GUEST).for_each(|at| fleet.start(at, ""));
    }

    fn deal(&mut self) -> Fault {
        use Fault::{Bounce, Clock, Die, Guest, Kill, Rolling};
        if self.deck.is_empty() {
            self.deck = vec![Kill, Kill, Kill, Die, Die, Die, Die, Rolling, Guest, Guest, Clock, Clock, Bounce];
            if std::env::var_os("THRONG_BOUNCE").is_some() {
                self.deck = vec![Bounce, Die, Bounce, Kill, Bounce, Bounce];
            }
            for at in (1..self.deck.len()).rev() {
                self.deck.swap(at, self.dice.roll(at as u64 + 1) as usize);
            }
        }
        self.deck.pop().expect("it was dealt")
    }

    fn victim(&mut self, fleet: &Fleet) -> usize {
        let may = |at: &usize| fleet.members[*at].is_running();
        let running: Vec<usize> = (0..fleet.members.len()).filter(may).collect();
        running[self.dice.roll(running.len() as u64) as usize]
    }

    fn point(&mut self) -> String {
        let of_a_batch: Vec<&str> =
            crash_points::TOPIC.into_iter().chain([crash_points::SETTLED, crash_points::EPOCH_TAKEN]).collect();
        let point = of_a_batch[self.dice.roll(of_a_batch.len() as u64) as usize];
        crash_points::kill_at(point, &mut self.dice)
    }

    fn kill(&mut self, fleet: &mut Fleet, feeder: &Feeder, at: usize) {
        let until = feeder.sent() + self.dice.roll(200) as usize;
        fleet.until("some records are written", |_| feeder.sent() >= until);
        if fleet.members[at].is_running() {
            fleet.kill(at);
        }
    }

    fn die(&mut self, fleet: &mut Fleet, at: usize) {
        fleet.kill(at);
        let point = self.point();
        fleet.start(at, &point);
        let died = fleet.dies(at, DYING);
        println!("  {} {} at {point}", fleet.members[at].name(), if died { "died" } else { "did not die" });
    }

    pub fn befall(&mut self, fleet: &mut Fleet, feeder: &Feeder) {
        self.round += 1;
        let since = Instant::now();
        let (fault, at) = (self.deal(), self.victim(fleet));
        println!("round {}: {fault:?}, {}", self.round, fleet.members[at].name());
        match fault {
            Fault::Kill => {
                self.kill(fleet, feeder, at);
                fleet.start(at, "");
            }
            Fault::Die => {
                self.die(fleet, at);
                fleet.start(at, "");
            }
            Fault::Rolling => {
                for at in 0..fleet.members.len() {
                    if fleet.members[at].is_running() {
                        fleet.end(at);
                        fleet.start(at, "");
                    }
                }
            }
            Fault::Guest if fleet.members[GUEST].is_running() => {
                if self.dice.roll(2) == 0 {
                    fleet.end(GUEST);
                } else {
                    fleet.kill(GUEST);
                }
                fleet.happened.leaves += 1;
            }
            Fault::Guest => {
                fleet.start(GUEST, "");
                fleet.happened.joins += 1;
            }
            Fault::Clock => {
                fleet.kill(at);
                let others = SHIFTS.into_iter().filter(|shift| *shift != fleet.members[at].shift_ms);
                fleet.members[at].shift_ms = others.collect::<Vec<_>>()[self.dice.roll(2) as usize];
                fleet.happened.shifts += 1;
                fleet.start(at, "");
            }
            Fault::Bounce => {
                fleet.topics.broker.restart();
                fleet.happened.bounces += 1;
            }
        }
        let (acted, since) = (since.elapsed(), Instant::now());
        fleet.catch_up(feeder);
        println!("  {:.1} s, and {:.1} s until all was read", acted.as_secs_f64(), since.elapsed().as_secs_f64());
    }
}
