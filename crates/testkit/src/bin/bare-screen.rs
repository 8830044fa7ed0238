//! The least that a program with a full screen does: takes the terminal, draws one frame, and waits for a key. The floor of
//! what the panels are measured by.

use std::io;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use ratatui::crossterm::{event, execute, queue};
use ratatui::widgets::{Block, Paragraph};

fn main() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen)?;
    let mut terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
    queue!(terminal.backend_mut(), BeginSynchronizedUpdate)?;
    terminal.draw(|frame| frame.render_widget(Paragraph::new("hello").block(Block::bordered()), frame.area()))?;
    execute!(terminal.backend_mut(), EndSynchronizedUpdate)?;
    event::read()?;
    execute!(io::stdout(), LeaveAlternateScreen)?;
    disable_raw_mode()
}
