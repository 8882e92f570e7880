//! The stored hints behind [`HintStore`]: generation, journal and preparation.

use super::*;

impl HintStore for KeptHints {
    fn load(&mut self) -> Result<SavedHints> {
        self.flush()?;
        let next = self.hints_folder.progress()?;
        let (version, asked) = (self.version(), Version::of(&self.asked));
        let stands_at = (version != asked).then(|| version.as_key(&self.asked));
        let Some(journal) = &mut self.journal else {
            return Ok(SavedHints { next, stands_at, ..SavedHints::default() });
        };
        let summary = journal.summary();
        let (number, prepared_for) = (summary.generation, summary.prepared_for);
        let expected = (summary.generation_len, summary.generation_digest);
        let read = self.hints_folder.read_generation(number).map_err(advised)?;
        let (folder, name) = (&*self.hints_folder.folder, generation_name(number));
        let (header, generation) = read.ok_or_else(|| advised(missing(folder, &name)))?;
        if (header.len, header.digest) != expected {
            let error = Error::corrupted(ANOTHER_FILE);
            return Err(advised(files::blame(&folder.path(&name), error)));
        }
        let (changes, ids) = journal.load();
        let stored = StoredRecord::read_all(journal).map_err(advised)?;
        Ok(SavedHints {
            generation: Some(generation),
            changes,
            unfinished: ids.into_iter().zip(stored).collect(),
            next,
            prepared_for: (prepared_for != asked || version != asked).then_some(prepared_for.table),
            ended: journal.summary().ended.clone(),
            stands_at,
        })
    }

    fn reserve(&mut self, batch: &[(ReservationId, &JournalRecord)]) -> Result<Vec<Receipt>> {
        self.check_poison()?;
        let Some(journal) = &self.journal else {
            return Err(Error::api_misuse("there are no hints to reserve from"));
        };
        self.check_not_ended()?;
        check_numbers(batch, journal.summary().reserved)?;
        let ids = batch.iter().map(|(id, _)| *id).collect();
        let records = batch.iter().map(|(_, record)| *record);
        self.writing(|hints| Receipt::append_all(&mut Reserving { hints, ids }, records))
    }

    fn settle(&mut self, id: ReservationId, change: &[u8]) -> Result<()> {
        self.check_poison()?;
        let known = self.journal.as_ref().is_some_and(|journal| journal.is_unfinished(id));
        let again = self.settled.iter().any(|(settled, _)| *settled == id);
        if again || !known {
            return Err(Error::api_misuse("a reservation was settled that is not unfinished"));
        }
        self.settled.push((id, Zeroizing::new(change.to_vec())));
        Ok(())
    }

    fn end(&mut self, id: Option<ReservationId>, change: &[u8], why: &str) -> Result<()> {
        self.check_poison()?;
        if self.journal.is_none() {
            return Err(no_hints_to_end());
        }
        self.check_not_ended()?;
        if let Some(id) = id {
            self.settle(id, change)?;
        }
        let (change, ended) = (Entry::Change(change), Entry::Ended(why));
        self.writing(|hints| {
            match id {
                Some(_) => hints.commit(&[ended])?,
                None => hints.commit(&[change, ended])?,
            }
            hints.count()
        })
    }

    fn follow(&mut self, change: &[u8], to: &HintsKey) -> Result<()> {
        self.check_poison()?;
        let Some(journal) = &self.journal else {
            return Err(Error::api_misuse("there are no hints that could follow the table"));
        };
        self.check_not_ended()?;
        check_follows(&self.version().as_key(&self.asked), to)?;
        if journal.unfinished() != self.settled.len() as u64 {
            return Err(unsettled());
        }
        let hints_folder = Arc::clone(&self.hints_folder);
        let mut next = hints_folder.lock();
        check_not_lent(next.lent)?;
        let to = Version::of(to);
        self.writing(|hints| {
            hints.commit(&[Entry::Change(change), Entry::StandsAt(to)])?;
            hints.count()?;
            hints_folder.follow(&mut next, to)
        })
    }

    fn restart(&mut self, key: &HintsKey) -> Result<()> {
        self.check_poison()?;
        self.check_not_ended()?;
        check_restarts(&self.asked, key)?;
        check_not_lent(self.hints_folder.lock().lent)?;
        self.writing(|hints| {
            let (folder, file) = (Arc::clone(&hints.hints_folder.folder), hints.anchor.file());
            // None of its commits may be counted any more.
            hints.journal = None;
            hints.settled.clear();
            let anchor = begin(&*folder, &file, key)?;
            *hints = Self::at(folder, AnchorAndJournal { anchor, journal: Ok(None) }, key, file)?;
            Ok(())
        })
    }

    fn flush(&mut self) -> Result<()> {
        self.check_poison()?;
        if self.settled.is_empty() {
            return Ok(());
        }
        self.writing(|hints| hints.commit(&[]))
    }

    fn preparation(&mut self) -> Result<Box<dyn PreparationStore>> {
        self.check_poison()?;
        Ok(Box::new(NextGenerationFiles::take(&self.hints_folder)?))
    }

    fn switch(&mut self) -> Result<()> {
        self.check_poison()?;
        self.check_not_ended()?;
        let hints_folder = Arc::clone(&self.hints_folder);
        // Held throughout, so that no preparation begins while the number changes.
        let mut next = hints_folder.lock();
        if !next.ready {
            return Err(Error::api_misuse("there is no prepared generation to switch to"));
        }
        let number = next.number;
        self.writing(|hints| hints.advance(number))?;
        next.advance();
        Ok(())
    }
}

/// Reservations on their way into the journal.
struct Reserving<'a> {
    hints: &'a mut KeptHints,
    ids: Vec<ReservationId>,
}

impl reservation::Journal for Reserving<'_> {
    fn append_and_sync(&mut self, entries: &[JournalEntry<'_>]) -> Result<()> {
        let reserved = self.ids.iter().zip(entries).flat_map(|(id, entry)| {
            [Entry::Change(entry.change), Entry::Unfinished(id.0, entry.record)]
        });
        self.hints.commit(&reserved.collect::<Vec<_>>())
    }
}
