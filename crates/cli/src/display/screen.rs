//! A terminal for progress bars that never holds up whoever draws: see [`voice`].

use super::voice;
use console::Term;
use indicatif::{ProgressDrawTarget, TermLike};
use std::io;
use std::sync::{Mutex, PoisonError};

/// Drawings a second, as `indicatif` has it.
const RATE: u8 = 20;

/// Standard error, if it is a terminal that can be drawn on.
pub(super) fn target() -> ProgressDrawTarget {
    match ProgressDrawTarget::stderr().is_hidden() {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::term_like_with_hz(Box::<Screen>::default(), RATE),
    }
}

/// Collects a drawing until it is flushed.
#[derive(Debug, Default)]
struct Screen(Mutex<String>);

impl Screen {
    fn push(&self, text: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
    }

    fn move_cursor(&self, by: usize, direction: char) -> io::Result<()> {
        if by > 0 {
            self.push(&format!("\x1b[{by}{direction}"));
        }
        Ok(())
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        Term::stderr().size().1
    }

    fn height(&self) -> u16 {
        Term::stderr().size().0
    }

    fn move_cursor_up(&self, by: usize) -> io::Result<()> {
        self.move_cursor(by, 'A')
    }

    fn move_cursor_down(&self, by: usize) -> io::Result<()> {
        self.move_cursor(by, 'B')
    }

    fn move_cursor_right(&self, by: usize) -> io::Result<()> {
        self.move_cursor(by, 'C')
    }

    fn move_cursor_left(&self, by: usize) -> io::Result<()> {
        self.move_cursor(by, 'D')
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        self.push(line);
        self.push("\n");
        Ok(())
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.push(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.push("\r\x1b[2K");
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let drawing = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if !drawing.is_empty() {
            voice::on_error().draw(drawing.into_bytes());
        }
        Ok(())
    }
}
