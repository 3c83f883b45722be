//! Whether a service is asked at all.
//!
//! A service that does not answer costs each compilation a deadline. After a few failures in a row it is out for a while, and
//! then one question tries it again.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Failures in a row after which it is out.
const FAILURES: u32 = 3;

/// Slow answers in a row after which it is out.
const SLOW: u32 = 8;

/// The longest time between two attempts.
const MOST_PAUSE: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub(crate) struct Circuit {
    state: Mutex<State>,
    /// Time that may be lost waiting for failures before it is out.
    patience: Duration,
    pause: Duration,
}

#[derive(Debug)]
enum State {
    Closed {
        failures: u32,
        slow: u32,
        lost: Duration,
    },
    Open {
        until: Instant,
        pause: Duration,
    },
    /// One question is on its way.
    Trying {
        pause: Duration,
    },
}

const CLOSED: State = State::Closed {
    failures: 0,
    slow: 0,
    lost: Duration::ZERO,
};

/// What became of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With an answer.
    Answered,
    /// Without one; the next may have one.
    Failed,
    /// With a refusal that will not change.
    Refused,
}

impl Circuit {
    /// `patience` is the deadline of one operation.
    pub(crate) const fn new(patience: Duration, pause: Duration) -> Self {
        Self {
            state: Mutex::new(CLOSED),
            patience,
            pause,
        }
    }

    /// Whether the service may be asked now. Who is told so says what became of it.
    pub(crate) fn may_ask(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match *state {
            State::Closed { .. } => true,
            State::Trying { .. } => false,
            State::Open { until, pause } => {
                let is_due = Instant::now() >= until;
                if is_due {
                    *state = State::Trying { pause };
                }
                is_due
            }
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        !matches!(*state, State::Closed { .. })
    }

    /// Notes how a question ended, and how long it took. `true` where the service is out from now on.
    pub(crate) fn note(&self, ended: Ended, took: Duration) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut *state, ended) {
            (State::Closed { failures, slow, lost }, Ended::Answered) => {
                (*failures, *lost) = (0, Duration::ZERO);
                *slow = if took > self.patience / 4 { *slow + 1 } else { 0 };
                if *slow < SLOW {
                    return false;
                }
            }
            (State::Closed { failures, lost, .. }, Ended::Failed) => {
                *failures += 1;
                *lost += took;
                if *failures < FAILURES && *lost < self.patience.mul_f64(0.7) {
                    return false;
                }
            }
            (State::Closed { .. }, Ended::Refused) => {}
            (State::Trying { .. }, Ended::Answered) => {
                *state = CLOSED;
                return false;
            }
            (State::Trying { pause }, _) => {
                let pause = (*pause * 2).min(MOST_PAUSE);
                *state = State::Open {
                    until: Instant::now() + pause,
                    pause,
                };
                return false;
            }
            // It was asked before it was out.
            (State::Open { .. }, _) => return false,
        }
        *state = State::Open {
            until: Instant::now() + self.pause,
            pause: self.pause,
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_millis(1);
    const PATIENCE: Duration = Duration::from_secs(2);
    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_few_failures_in_a_row_open_it_once() {
        let circuit = Circuit::new(PATIENCE, LONG);
        for ended in [
            Ended::Failed,
            Ended::Failed,
            Ended::Answered,
            Ended::Failed,
            Ended::Failed,
        ] {
            assert!(circuit.may_ask());
            assert!(!circuit.note(ended, QUICK));
        }
        assert!(circuit.note(Ended::Failed, QUICK), "the third in a row");
        assert!(!circuit.may_ask());
        assert!(!circuit.note(Ended::Failed, QUICK), "asked before, told once");
    }

    #[test]
    fn one_deadline_that_passed_is_enough_and_so_is_a_refusal() {
        let circuit = Circuit::new(PATIENCE, LONG);
        assert!(circuit.note(Ended::Failed, PATIENCE));
        let circuit = Circuit::new(PATIENCE, LONG);
        assert!(circuit.note(Ended::Refused, QUICK));
    }

    #[test]
    fn answers_that_are_always_slow_open_it() {
        let circuit = Circuit::new(PATIENCE, LONG);
        let opened: Vec<bool> = (0..8).map(|_| circuit.note(Ended::Answered, PATIENCE / 2)).collect();
        assert_eq!(opened, [false, false, false, false, false, false, false, true]);
    }

    #[test]
    fn one_question_tries_it_again() {
        let circuit = Circuit::new(PATIENCE, Duration::ZERO);
        assert!(circuit.note(Ended::Refused, QUICK));
        assert!(circuit.may_ask());
        assert!(!circuit.may_ask(), "one at a time");
        assert!(!circuit.note(Ended::Failed, QUICK), "told already");
        assert!(circuit.may_ask());
        assert!(!circuit.note(Ended::Answered, QUICK));
        assert!(!circuit.is_open());
    }
    #[test]
    fn each_question_that_fails_doubles_the_pause_up_to_a_limit() {
        let after = |pause| {
            let circuit = Circuit::new(PATIENCE, LONG);
            *circuit.state.lock().expect("nobody panicked") = State::Trying { pause };
            circuit.note(Ended::Failed, QUICK);
            let state = circuit.state.lock().expect("nobody panicked");
            match &*state {
                State::Open { pause, .. } => Some(*pause),
                _ => None,
            }
        };
        assert_eq!(after(Duration::from_secs(10)), Some(Duration::from_secs(20)));
        assert_eq!(after(MOST_PAUSE), Some(MOST_PAUSE));
    }

    #[test]
    fn a_quarter_of_the_time_is_not_slow_and_most_of_it_is_lost() {
        let circuit = Circuit::new(PATIENCE, LONG);
        assert!((0..20).all(|_| !circuit.note(Ended::Answered, PATIENCE / 4)));
        let most = PATIENCE.mul_f64(0.7);
        assert!(circuit.note(Ended::Failed, most));
        let circuit = Circuit::new(PATIENCE, LONG);
        assert!(!circuit.note(Ended::Failed, most - QUICK));
        *circuit.state.lock().expect("nobody panicked") = State::Trying { pause: LONG };
        circuit.note(Ended::Failed, QUICK);
        assert!(!circuit.may_ask(), "not before the pause is over");
    }
}
