//! A server of finite differences in the making.

use super::SchemePlan;
use super::servers::{ErasedServer, ErasedSetup, ServerHost, nothing_kept};
use crate::finite_differences::FiniteDifferencesSetup;
use crate::offline::Precomputed;
use privet_core::Result;

/// A table that is transformed when the server starts. The result, many times as large as the table, is kept in memory alone.
pub(super) struct Transforming {
    pub(super) plan: SchemePlan,
    pub(super) setup: FiniteDifferencesSetup,
}

impl ErasedSetup for Transforming {
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn kept_len(&self) -> u64 {
        0
    }

    fn precompute(&self, _progress: &(dyn Fn(f64) + Sync)) -> Result<Precomputed> {
        Ok(Precomputed::default())
    }

    fn finish(
        self: Box<Self>,
        kept: &[u8],
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<Box<dyn ErasedServer>> {
        nothing_kept(kept)?;
        Ok(Box::new(ServerHost::new(self.plan, self.setup.finish(progress)?)))
    }
}
