//! Examples in the help of these commands.

pub(crate) const PAPERS: &str = "\
Examples:
  All papers, on small tables:
    privet papers --quick

  All of it, in hours; a second call goes on where the first was interrupted:
    privet papers -o figures

  One paper, without the runs that take longer than a minute:
    privet papers tapir --longest 60s -o figures";

pub(crate) const SETUP: &str = "\
Examples:
  A reference string for tapir-pp:
    privet setup pointproofs --size 4096 -o string.pps

  The points of a table:
    privet setup points t.privet --scheme finite-differences -o t.points";

pub(crate) const SETUP_POINTPROOFS: &str = "\
Examples:
  For tables of some four million records:
    privet setup pointproofs --size 4096 -o string.pps

  Serve with it:
    privet serve t.privet --scheme tapir-pp --reference-string string.pps";

pub(crate) const SETUP_POINTS: &str = "\
Examples:
  With at most 2^30 bytes of points:
    privet setup points t.privet --scheme finite-differences --storage-limit 2^30 -o t.points

  For three servers:
    privet setup points t.privet --scheme finite-differences-many --servers 3 -o t.points

  Serve from the file:
    privet serve t.privet --points t.points --mapped";

pub(crate) const TRADEOFF: &str = "\
Examples:
  What two servers of a table of 2^20 records can choose from:
    privet tradeoff --records 2^20 --record-len 32

  The same for three servers, with a plot:
    privet tradeoff --records 2^20 --record-len 32 --servers 3 --svg curve.svg";
