//! What somebody may have meant who mistyped a name.

/// The name among `known` that is most like `typed`, if one is like it at all.
pub fn meant<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let letters = typed.chars().count();
    // One slip for each four letters. A name that somebody cut short is like the whole one.
    let is_like = |name: &str| {
        let is_cut = letters >= 3 && name.starts_with(&typed);
        let slips = strsim::damerau_levenshtein(&typed, name);
        is_cut || slips <= (letters / 4).max(1) && 2 * slips < letters.min(name.chars().count())
    };
    let known = known.into_iter().map(|name| (name, name.to_lowercase()));
    let like = known.filter(|(_, lower)| *lower == typed || is_like(lower));
    let like = like.map(|(name, lower)| (strsim::jaro_winkler(&typed, &lower), name));
    like.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_name_is_not() {
        let known = ["simplepir", "doublepir", "dpf", "Name", "phone", "notes", "a"];
        for (typed, name) in [
            ("simplpir", Some("simplepir")),
            ("SimplePIR", Some("simplepir")),
            ("dpff", Some("dpf")),
            ("nmae", Some("Name")),
            ("doubel-pir", Some("doublepir")),
            ("simple", Some("simplepir")),
            ("note", Some("notes")),
            ("onion", None),
            ("x", None),
            ("nope", None),
            ("done", None),
            ("nothing", None),
            ("", None),
        ] {
            assert_eq!(meant(typed, known), name, "{typed}");
        }
        assert_eq!(meant("x", ["simplepir", ""]), None);
        assert_eq!(meant("x", []), None);
    }
}
