//! What a reader on a thread of its own has read, on its way to whoever asks for it between batches.

use crossbeam_channel::{Receiver, Sender, bounded};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What has been read. Its end is the end of the reader.
pub struct Feed<News> {
    /// In the order in which it was read.
    pub news: Receiver<News>,
    over: Arc<AtomicBool>,
}

impl<News> Drop for Feed<News> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
    }
}

/// Where a reader says what it has read.
pub(super) struct Told<News> {
    news: Sender<News>,
    over: Arc<AtomicBool>,
}

/// Nobody listens any more.
pub(super) struct Over;

impl<News> Told<News> {
    /// Says something; waits while too much has been said that nobody has heard.
    pub fn say(&self, news: News) -> Result<(), Over> {
        self.news.send(news).map_err(|_| Over)
    }

    /// Whether nobody listens any more.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

impl<News: Send + 'static> Feed<News> {
    /// A feed of `news` without a thread.
    #[cfg(test)]
    pub(super) fn new(news: Receiver<News>) -> Self {
        Self { news, over: Arc::default() }
    }

    /// Lets `read` read on a thread of its own, called `thread`. At most `waiting` news wait.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(super) fn of(
        thread: &str,
        waiting: usize,
        read: impl FnOnce(&Told<News>) + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, news) = bounded(waiting);
        let over = Arc::<AtomicBool>::default();
        let told = Told { news: sender, over: Arc::clone(&over) };
        // A panic closes the channel, and that is heard.
        std::thread::Builder::new().name(thread.to_owned()).spawn(move || read(&told))?;
        Ok(Self { news, over })
    }
}
