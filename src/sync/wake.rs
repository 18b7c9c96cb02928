//! How one thread ends another's wait, without knowing how that one waits.

use std::sync::Arc;

/// Ends another thread's wait.
///
/// What an implementation must promise, because [`mod@super::mailbox`] rests on it:
///
/// * **Kept.** A wake that finds its thread awake ends that thread's next wait. (`Thread::unpark` keeps a token, an eventfd a
///   count.) Without it, a wake between "looked, found nothing" and "went to sleep" would be lost.
/// * **Merged.** Any number of wakes before a wait may end that one wait only.
/// * **Short.** The caller is a thread with work of its own.
pub trait Wake {
    /// Ends the current wait of the thread behind this, or else its next one.
    fn wake(&self);
}

/// Several mailboxes of one thread share its one waker.
impl<W: Wake + ?Sized> Wake for Arc<W> {
    fn wake(&self) {
        (**self).wake();
    }
}
