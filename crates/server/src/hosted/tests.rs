use super::*;

#[test]
fn parts_are_copied_piece_by_piece_and_never_beyond_their_end() {
    let part = Part::Memory(Arc::from(*b"0123456789"));
    assert_eq!(part.len(), 10);
    assert_eq!(&part.copy(0, 4)[..], b"0123");
    assert_eq!(&part.copy(8, 4)[..], b"89");
    assert!(part.copy(10, 4).is_empty());
    assert!(part.copy(u64::MAX, usize::MAX).is_empty());
}
