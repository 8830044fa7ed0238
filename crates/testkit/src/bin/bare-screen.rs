//! The least that a program with a full screen does: takes the terminal, draws one frame, and shows each letter that is typed;
//! Backspace takes it away, Esc ends it. The floor of what the panels are measured by.

use std::io::{self, Stdout};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode};
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use ratatui::crossterm::{execute, queue};
use ratatui::widgets::{Block, Paragraph};

fn main() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen)?;
    let mut terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
    let mut text = "hello".to_owned();
    loop {
        draw(&mut terminal, &text)?;
        match event::read()? {
            Event::Key(key) if key.code == KeyCode::Esc => break,
            Event::Key(key) if key.code == KeyCode::Backspace => drop(text.pop()),
            Event::Key(key) => text.extend(key.code.as_char()),
            _ => {}
        }
    }
    execute!(io::stdout(), LeaveAlternateScreen)?;
    disable_raw_mode()
}

fn draw(terminal: &mut Terminal<CrosstermBackend<Stdout>>, text: &str) -> io::Result<()> {
    queue!(terminal.backend_mut(), BeginSynchronizedUpdate)?;
    terminal.draw(|frame| frame.render_widget(Paragraph::new(text).block(Block::bordered()), frame.area()))?;
    execute!(terminal.backend_mut(), EndSynchronizedUpdate)
}
