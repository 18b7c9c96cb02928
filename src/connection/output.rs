//! Answers that the socket has not taken yet. Holds memory only while there are some.

use std::collections::VecDeque;

use bytes::Bytes;

/// Unsent bytes, usually none: a worker writes answers from a buffer of its own and leaves here what the socket refused.
#[derive(Debug, Default)]
pub struct Output {
    /// To be sent before `bytes`; few connections ever have any.
    shared: Option<Box<Shared>>,
    bytes: Vec<u8>,
    /// How many of `bytes` are sent.
    sent: usize,
}

/// Pieces that other answers may share.
#[derive(Debug, Default)]
struct Shared {
    /// None of them is empty, and there is one.
    pieces: VecDeque<Bytes>,
    len: usize,
}

impl Output {
    /// What is to be sent next; empty only if everything is sent.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match self
            .shared
            .as_ref()
            .and_then(|shared| shared.pieces.front())
        {
            Some(piece) => piece,
            None => &self.bytes[self.sent..],
        }
    }

    /// How many bytes are not sent.
    #[must_use]
    pub fn len(&self) -> usize {
        let shared_len = self.shared.as_ref().map_or(0, |shared| shared.len);
        shared_len + self.bytes.len() - self.sent
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

    /// Adds a piece at the end without copying it.
    pub fn share(&mut self, piece: Bytes) {
        let mut own = Bytes::from(std::mem::take(&mut self.bytes));
        let own = own.split_off(std::mem::take(&mut self.sent));
        for piece in [own, piece] {
            if !piece.is_empty() {
                let shared = self.shared.get_or_insert_default();
                shared.len += piece.len();
                shared.pieces.push_back(piece);
            }
        }
    }

    /// Lets `write` add bytes at the end.
    pub fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.compact();
        write(&mut self.bytes);
    }

    /// The first `count` bytes of [`Self::as_slice`] are sent.
    pub fn written(&mut self, count: usize) {
        if let Some(shared) = &mut self.shared {
            let piece = shared.pieces.front_mut().expect("there is one");
            bytes::Buf::advance(piece, count);
            shared.len -= count;
            if piece.is_empty() {
                shared.pieces.pop_front();
            }
            if shared.pieces.is_empty() {
                self.shared = None;
            }
        } else {
            self.sent += count;
            assert!(
                self.sent <= self.bytes.len(),
                "more was sent than there was"
            );
        }
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
    fn shared_pieces_keep_their_place_among_the_others() {
        let mut output = Output::default();
        output.extend(b"abcd");
        output.written(1);
        output.share(Bytes::from_static(b"efg"));
        output.share(Bytes::new());
        output.extend(b"hi");
        assert_eq!(output.len(), 8);
        let mut sent = Vec::new();
        while !output.is_empty() {
            let next = output.as_slice();
            let count = next.len().min(2);
            sent.extend_from_slice(&next[..count]);
            output.written(count);
        }
        assert_eq!(sent, b"bcdefghi");
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
