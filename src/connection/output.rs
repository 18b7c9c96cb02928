//! Answers that the socket has not taken yet. Holds memory only while there are some.

/// Unsent bytes, usually none: a worker writes answers from a buffer of its own and leaves here what the socket refused.
#[derive(Debug, Default)]
pub struct Output {
    bytes: Vec<u8>,
    /// How many of `bytes` are sent.
    sent: usize,
}

impl Output {
    /// What is not sent.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// How many bytes are not sent.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Whether everything is sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds bytes at the end.
    pub fn extend(&mut self, more: &[u8]) {
        self.compact();
        self.bytes.extend_from_slice(more);
    }

    /// Lets `write` add bytes at the end.
    pub fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.compact();
        write(&mut self.bytes);
    }

    /// The first `count` bytes are sent.
    pub fn written(&mut self, count: usize) {
        self.sent += count;
        assert!(
            self.sent <= self.bytes.len(),
            "more was sent than there was"
        );
        if self.is_empty() {
            *self = Self::default();
        }
    }

    /// Drops what is sent, once it is the greater part: a byte is moved at most once for each that was sent.
    fn compact(&mut self) {
        if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_order_and_a_sent_output_holds_no_memory() {
        let mut output = Output::default();
        output.extend(b"abc");
        output.append(|bytes| bytes.extend_from_slice(b"def"));
        output.written(4);
        output.extend(b"gh");
        assert_eq!(output.as_slice(), b"efgh");
        output.written(4);
        assert!(output.is_empty());
        assert_eq!(output.bytes.capacity(), 0);
    }

    #[test]
    fn sent_bytes_do_not_pile_up_under_a_peer_that_never_catches_up() {
        let mut output = Output::default();
        output.extend(&[0; 1000]);
        for _ in 0..10_000 {
            output.extend(&[0; 100]);
            output.written(100);
        }
        assert!(
            output.bytes.capacity() < 8000,
            "{}",
            output.bytes.capacity()
        );
    }
}
