//! What somebody may have meant who mistyped a name.

/// The name among `known` that is most like `typed`, if one is like it at all.
pub fn meant<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Two names with one slip in five characters are about as like each other.
    const LIKE: f64 = 0.8;
    let typed = typed.to_lowercase();
    let likeness = |name: &str| strsim::jaro_winkler(&typed, &name.to_lowercase());
    let like = known.into_iter().map(|name| (likeness(name), name)).filter(|(how, _)| *how >= LIKE);
    like.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_name_is_not() {
        let known = ["simplepir", "doublepir", "dpf", "Name", "phone"];
        for (typed, name) in [
            ("simplpir", Some("simplepir")),
            ("SimplePIR", Some("simplepir")),
            ("dpff", Some("dpf")),
            ("nmae", Some("Name")),
            ("onion", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(meant(typed, known), name, "{typed}");
        }
        assert_eq!(meant("x", []), None);
    }
}
