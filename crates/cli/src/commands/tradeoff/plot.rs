//! A plot of curves as an SVG file: two axes, perhaps a third on the right, and what each curve is in words below. Text stays text, on a white ground of its own, so that it can be read and searched in any viewer;
//! the same plot is the same bytes.

use std::fmt::Write as _;

const WIDTH: f64 = 820.0;
const LEFT: f64 = 96.0;
const RIGHT: f64 = 730.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 440.0;
/// From the axis below to the first line of the legend, and from each line to the next.
const LEGEND: f64 = 76.0;
const LINE: f64 = 22.0;

const GROUND: &str = "#ffffff";
const TEXT: &str = "#1a1a1a";
const GRID: &str = "#dddddd";
/// Told apart by people who see colours differently, too (Okabe, Ito: *Color Universal Design*).
const COLOURS: [&str; 5] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#333333"];

/// Curves with at most so many points show where they are.
const MOST_DOTS: usize = 60;

pub(super) struct Plot {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) right: Option<Axis>,
    pub(super) series: Vec<Series>,
}

pub(super) struct Series {
    pub(super) label: String,
    pub(super) look: Look,
    /// What lies outside the axes is not drawn.
    pub(super) points: Vec<(f64, f64)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Line,
    Dashed,
    Faint,
    /// Rings, and no line between them.
    Marks,
}

/// From where to where, and what is written beside it.
pub(super) struct Axis {
    label: String,
    logarithmic: bool,
    /// Of the binary logarithms, if it is logarithmic.
    low: f64,
    high: f64,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// From `low` to `high`, a tick at each multiple of `step`.
    pub(super) fn linear(label: &str, low: f64, high: f64, step: f64) -> Self {
        let (first, last) = ((low / step).ceil() as i32, (high / step).floor() as i32);
        let tick = |number| f64::from(number) * step;
        let ticks = (first..=last).map(|number| (tick(number), format!("{:.1}", tick(number))));
        Self { label: label.to_owned(), logarithmic: false, low, high, ticks: ticks.collect() }
    }

    /// Logarithmic, over all `values`, a tick at each power of ten.
    pub(super) fn counts(label: &str, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = extent(values.map(f64::log10));
        let ticks = (low..=high).map(|power| (position(power), power_of_ten(power)));
        Self {
            label: label.to_owned(),
            logarithmic: true,
            low: position(low),
            high: position(high),
            ticks: ticks.collect(),
        }
    }

    /// Logarithmic, over all `values`, with ticks at powers of two.
    pub(super) fn bytes(label: &str, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = extent(values.map(f64::log2));
        Self::powers_of_two(label, f64::from(low), f64::from(high))
    }

    /// The same axis in bytes, if this one counts what has so many bytes each.
    pub(super) fn as_bytes(&self, label: &str, each: f64) -> Self {
        Self::powers_of_two(label, self.low + each.log2(), self.high + each.log2())
    }

    fn powers_of_two(label: &str, low: f64, high: f64) -> Self {
        let step = [1, 2, 5, 10].into_iter().find(|step| (high - low) / f64::from(*step) <= 9.0);
        let step = step.unwrap_or(20);
        // Less than a byte has no name.
        let first = (low / f64::from(step)).ceil().max(0.0) as i32;
        let last = (high / f64::from(step)).floor() as i32;
        let ticks = (first..=last).map(|number| number * step);
        let ticks = ticks.map(|power| (f64::from(power), binary_bytes(power))).collect();
        Self { label: label.to_owned(), logarithmic: true, low, high, ticks }
    }

    /// How far along the axis a value lies, from 0 to 1. `None` outside.
    fn share(&self, value: f64) -> Option<f64> {
        let place = if self.logarithmic { value.log2() } else { value };
        let share = (place - self.low) / (self.high - self.low);
        (0.0..=1.0).contains(&share).then_some(share)
    }

    /// The ticks by how far along they are.
    fn ticks(&self) -> impl Iterator<Item = (f64, &str)> {
        let length = self.high - self.low;
        self.ticks.iter().map(move |(place, text)| ((place - self.low) / length, text.as_str()))
    }
}

/// The whole numbers around all values, at least one apart.
fn extent(values: impl Iterator<Item = f64>) -> (i32, i32) {
    let values = values.filter(|value| value.is_finite());
    let ends = values.fold(None, |ends: Option<(f64, f64)>, value| {
        let (low, high) = ends.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    });
    let (low, high) = ends.unwrap_or((0.0, 1.0));
    let (low, high) = (low.floor() as i32, high.ceil() as i32);
    (low, high.max(low + 1))
}

/// Where a power of ten lies among binary logarithms.
fn position(power_of_ten: i32) -> f64 {
    f64::from(power_of_ten) * std::f64::consts::LOG2_10
}

/// `1`, `10`, `100`, `1,000`, and `10⁴` from there.
fn power_of_ten(power: i32) -> String {
    match power {
        0..=3 => crate::display::count(10u64.pow(power as u32)),
        _ => {
            let digits = ["⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"];
            let exponent = power.unsigned_abs().to_string().into_bytes();
            let exponent = exponent.iter().map(|digit| digits[usize::from(digit - b'0')]);
            let sign = if power < 0 { "⁻" } else { "" };
            format!("10{sign}{}", exponent.collect::<String>())
        }
    }
}

/// `512 B`, `4 KiB`, `1 TiB`: 2^`power` bytes, from 1 byte on.
fn binary_bytes(power: i32) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = (power as usize / 10).min(units.len() - 1);
    format!("{} {}", 1u64 << (power as usize - 10 * unit).min(63), units[unit])
}

impl Plot {
    /// The file.
    pub(super) fn svg(&self) -> String {
        let series = self.series.iter().zip(COLOURS.iter().cycle());
        let shown: Vec<_> = series
            .map(|(series, colour)| (series, self.runs(series), *colour))
            .filter(|(_, runs, _)| !runs.is_empty())
            .collect();
        let height = BOTTOM + LEGEND + LINE * shown.len() as f64;
        let mut svg = Svg(String::new());
        svg.line(format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" font-family="sans-serif" font-size="13" fill="{TEXT}">"#
        ));
        svg.line(format!("<title>{}</title>", escaped(&self.title)));
        svg.line(format!(r#"<rect width="{WIDTH}" height="{height}" fill="{GROUND}"/>"#));
        svg.text((LEFT + RIGHT) / 2.0, TOP - 20.0, "middle", r#" font-size="16""#, &self.title);
        self.draw_axes(&mut svg);
        for (series, runs, colour) in &shown {
            svg.series(series, runs, colour);
        }
        for (place, (series, _, colour)) in shown.iter().enumerate() {
            let y = BOTTOM + LEGEND + LINE * place as f64;
            let sample = match series.look {
                Look::Marks => vec![(LEFT + 16.0, y - 4.0)],
                _ => vec![(LEFT, y - 4.0), (LEFT + 32.0, y - 4.0)],
            };
            svg.series(series, &[sample], colour);
            svg.text(LEFT + 44.0, y, "start", "", &series.label);
        }
        svg.line("</svg>".to_owned());
        svg.0
    }

    /// The pieces of a curve that lie within the axes, in the file's coordinates.
    fn runs(&self, series: &Series) -> Vec<Vec<(f64, f64)>> {
        let places = series.points.iter().map(|(x, y)| {
            let (x, y) = self.x.share(*x).zip(self.y.share(*y))?;
            Some((across(x), up(y)))
        });
        let places: Vec<_> = places.collect();
        let pieces = places.split(Option::is_none).filter(|piece| !piece.is_empty());
        pieces.map(|piece| piece.iter().flatten().copied().collect()).collect()
    }

    fn draw_axes(&self, svg: &mut Svg) {
        for (share, text) in self.x.ticks() {
            let x = across(share);
            svg.stroke((x, TOP), (x, BOTTOM), GRID);
            svg.text(x, BOTTOM + 18.0, "middle", "", text);
        }
        for (share, text) in self.y.ticks() {
            let y = up(share);
            svg.stroke((LEFT, y), (RIGHT, y), GRID);
            svg.text(LEFT - 8.0, y + 4.0, "end", "", text);
        }
        let middle = (TOP + BOTTOM) / 2.0;
        if let Some(right) = &self.right {
            for (share, text) in right.ticks() {
                let y = up(share);
                svg.stroke((RIGHT, y), (RIGHT + 5.0, y), TEXT);
                svg.text(RIGHT + 9.0, y + 4.0, "start", "", text);
            }
            svg.vertical(WIDTH - 10.0, middle, &right.label);
        }
        svg.line(format!(
            r#"<rect x="{LEFT}" y="{TOP}" width="{}" height="{}" fill="none" stroke="{TEXT}"/>"#,
            RIGHT - LEFT,
            BOTTOM - TOP
        ));
        svg.text((LEFT + RIGHT) / 2.0, BOTTOM + 42.0, "middle", "", &self.x.label);
        svg.vertical(18.0, middle, &self.y.label);
    }
}

fn across(share: f64) -> f64 {
    LEFT + share * (RIGHT - LEFT)
}

fn up(share: f64) -> f64 {
    BOTTOM - share * (BOTTOM - TOP)
}

/// A file in the making, an element on each line.
struct Svg(String);

impl Svg {
    fn line(&mut self, element: String) {
        self.0.push_str(&element);
        self.0.push('\n');
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, more: &str, text: &str) {
        let text = escaped(text);
        self.line(format!(
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}"{more}>{text}</text>"#
        ));
    }

    /// Text that runs upwards.
    fn vertical(&mut self, x: f64, y: f64, text: &str) {
        let turned = format!(r#" transform="rotate(-90 {x:.1} {y:.1})""#);
        self.text(x, y, "middle", &turned, text);
    }

    fn stroke(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str) {
        self.line(format!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{colour}"/>"#
        ));
    }

    /// Draws these pieces as that series looks.
    fn series(&mut self, series: &Series, runs: &[Vec<(f64, f64)>], colour: &str) {
        let dots = series.points.len() <= MOST_DOTS;
        for run in runs {
            if series.look == Look::Marks {
                for (x, y) in run {
                    self.line(format!(
                        r#"<circle cx="{x:.1}" cy="{y:.1}" r="7" fill="none" stroke="{colour}" stroke-width="2"/>"#
                    ));
                }
                continue;
            }
            let mut points = String::new();
            for (x, y) in run {
                let _ = write!(points, "{x:.1},{y:.1} ");
            }
            let dashes = match series.look {
                Look::Line | Look::Marks => "",
                Look::Dashed => r#" stroke-dasharray="7 4""#,
                Look::Faint => r#" stroke-dasharray="2 4""#,
            };
            self.line(format!(
                r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>"#,
                points.trim_end()
            ));
            for (x, y) in run.iter().filter(|_| dots) {
                self.line(format!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="{colour}"/>"#));
            }
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_where_their_values_are() {
        let linear = Axis::linear("", 1.0 / 3.0, 1.0, 0.1);
        let texts: Vec<&str> = linear.ticks().map(|(_, text)| text).collect();
        assert_eq!(texts, ["0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1.0"]);
        let counts = Axis::counts("", [30.0, 12_000.0].into_iter());
        let texts: Vec<&str> = counts.ticks().map(|(_, text)| text).collect();
        assert_eq!(texts, ["10", "100", "1,000", "10⁴", "10⁵"]);
        let bytes = Axis::bytes("", [700.0, 3e9].into_iter());
        let texts: Vec<&str> = bytes.ticks().map(|(_, text)| text).collect();
        assert_eq!(texts, ["1 KiB", "32 KiB", "1 MiB", "32 MiB", "1 GiB"]);
        for (axis, value, text) in
            [(&counts, 1e3, "1,000"), (&bytes, 1048576.0, "1 MiB"), (&linear, 0.7, "0.7")]
        {
            let (share, _) = axis.ticks().find(|(_, found)| *found == text).unwrap();
            assert!((axis.share(value).unwrap() - share).abs() < 1e-9, "{text}");
        }
        // Half a kilobyte each: twice as many stand where a kilobyte does.
        let right = counts.as_bytes("", 512.0);
        let (share, _) = right.ticks().find(|(_, text)| *text == "64 KiB").unwrap();
        assert!((counts.share(128.0).unwrap() - share).abs() < 1e-9);
    }

    #[test]
    fn one_value_or_none_make_an_axis_too() {
        for values in [vec![], vec![1.0], vec![1024.0], vec![0.0], vec![f64::NAN]] {
            for axis in
                [Axis::counts("", values.iter().copied()), Axis::bytes("", values.iter().copied())]
            {
                assert!(axis.high > axis.low && axis.ticks().count() >= 2, "{values:?}");
                assert!(axis.ticks().all(|(share, _)| (0.0..=1.0).contains(&share)));
            }
        }
        // From 1 byte to what no machine has, and single bits.
        let wide = Axis::bytes("", [1.0, 1e30].into_iter());
        assert!(wide.ticks().count() <= 10);
        let bits = Axis::counts("", [1.0].into_iter()).as_bytes("", 1.0 / 8.0);
        assert!(bits.ticks().all(|(_, text)| text.ends_with(" B")));
    }

    #[test]
    fn curves_end_at_the_axes() {
        let axis = |label: &str| Axis::linear(label, 0.0, 1.0, 0.5);
        let points = vec![(0.0, 2.0), (0.25, 0.5), (0.5, 0.5), (0.6, f64::NAN), (1.0, 1.0)];
        let plot = Plot {
            title: "a < b & c > d".to_owned(),
            x: axis("x"),
            y: axis("y"),
            right: None,
            series: vec![
                Series { label: "inside".to_owned(), look: Look::Line, points },
                Series { label: "outside".to_owned(), look: Look::Marks, points: vec![(3.0, 3.0)] },
            ],
        };
        let svg = plot.svg();
        assert_eq!(svg, plot.svg());
        assert!(svg.contains("<title>a &lt; b &amp; c &gt; d</title>"));
        // Two pieces, and the sample in the legend.
        assert_eq!(svg.matches("<polyline ").count(), 3);
        assert!(svg.contains(">inside<") && !svg.contains("outside"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }
}
