//! A scheme of which browsers have the name alone: TAPIR-PP, whose curve is not in their build.

use super::*;

pub(in super::super) static TAPIR_PP_IS_ABSENT: Absent =
    Absent { id: crate::tapir::POINTPROOFS, about: crate::tapir::POINTPROOFS_ABOUT };

pub(in super::super) struct Absent {
    id: SchemeId,
    about: About,
}

impl Absent {
    fn refusal<T>(&self) -> Result<T> {
        Err(Error::api_misuse(format!("{} is not a part of Privet for browsers", self.id)))
    }
}

impl Descriptor for Absent {
    fn about(&self) -> &'static About {
        &TAPIR_PP_IS_ABSENT.about
    }

    fn patches(&self) -> Option<&'static dyn ErasedPatches> {
        None
    }

    fn points(&self) -> Option<&'static dyn ErasedPoints> {
        None
    }

    fn plan(&self, _: &TableIdentity, _: &Tuning) -> Result<SchemePlan> {
        self.refusal()
    }

    fn announced(&self, _: &TableIdentity, _: &[u8]) -> Result<SchemePlan> {
        self.refusal()
    }

    fn setup(
        &self,
        _: SchemePlan,
        _: TableView<'_>,
        _: &Tuning,
        _: ServerOptions,
    ) -> Result<Box<dyn ErasedSetup>> {
        self.refusal()
    }

    fn client(
        &self,
        _: SchemePlan,
        _: &TableIdentity,
        _: Arc<dyn HintSource>,
        _: Kernels,
    ) -> Result<Box<dyn ErasedClient>> {
        Err(other_kind(self.id))
    }

    fn hinted_client(
        &self,
        _: SchemePlan,
        _: &TableIdentity,
        _: Zeroizing<Vec<u8>>,
        _: Kernels,
    ) -> Result<Box<dyn ErasedClient>> {
        Err(other_kind(self.id))
    }

    fn preparation(
        &self,
        _: &SchemePlan,
        _: &TableIdentity,
        _: [u8; 32],
        _: Option<&[u8]>,
        _: Kernels,
    ) -> Result<Box<dyn ErasedPreparation>> {
        Err(other_kind(self.id))
    }

    fn makeshift(&self, _: &TableIdentity, _: &Tuning) -> Option<Makeshift> {
        None
    }

    fn told(&self, _: &TableIdentity, _: &[u8]) -> Result<Told> {
        self.refusal()
    }

    fn queries_say(&self, _: &TableIdentity, _: &[u8], _: Role) -> Option<String> {
        None
    }

    fn queries_look_random(&self, _: Role) -> bool {
        true
    }
}
