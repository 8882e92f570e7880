//! All kinds of attack at once.

use crate::attack::{Attacker, Strength, defaults};
use crate::connections::silence;
use crate::floods::{begin_and_reset, only_pings};
use crate::process::Attacked;
use crate::slow::without_bodies;
use crate::unread::with_closed_windows;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attacks_of_all_kinds_at_once() {
    let attacked = Attacked::start("together::attacks_of_all_kinds_at_once", defaults).await;
    attacked
        .withstands(
            "attacks of all kinds from 5 addresses",
            Strength { connections: 48, addresses: 5 },
            async |attacker: Attacker| match attacker.number % 8 {
                0 => without_bodies(attacker, "Answer").await,
                1 => without_bodies(attacker, "Describe").await,
                2 => with_closed_windows(attacker, "Fetch", 64).await,
                3 => with_closed_windows(attacker, "Prepare", 16).await,
                4 => with_closed_windows(attacker, "Answer", 256).await,
                5 => only_pings(attacker).await,
                6 => begin_and_reset(attacker).await,
                _ => silence(attacker).await,
            },
        )
        .await;
}
