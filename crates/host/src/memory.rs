//! How much memory there is.

use std::path::Path;

/// The memory of the machine, in bytes. `None` if the system does not say.
pub fn total() -> Option<u64> {
    of_system("MemTotal:")
}

/// A value of `/proc/meminfo`, in bytes; `None` if the system has no such file.
fn of_system(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// How many bytes this process can still get: from the machine, and within the limit of its control
/// group (a container's, for example). `None` if the system does not say.
pub fn available() -> Option<u64> {
    let of_system = of_system("MemAvailable:")?;
    Some(within_group().map_or(of_system, |left| left.min(of_system)))
}

/// How many more bytes the control group allows (version 2; its own limit, not those of groups
/// above it).
fn within_group() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let folder = Path::new("/sys/fs/cgroup").join(group);
    let figure = |name: &str| -> Option<u64> {
        std::fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
    };
    Some(figure("memory.max")?.saturating_sub(figure("memory.current")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_available_than_there_is() {
        if let (Some(available), Some(total)) = (available(), total()) {
            assert!(available <= total);
        }
        assert_eq!(of_system("NoSuchFigure:"), None);
    }
}
