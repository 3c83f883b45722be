//! x
use clap::Args;
use super::{Failed, environment};
/// x
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    toolkits: environment::Toolkits,
}
pub fn run(_: &Arguments) -> Result<(), Failed> { Ok(()) }
