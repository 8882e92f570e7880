//! A plot of curves as an SVG file: two axes, an optional third on the right, and a legend below.
//! Text stays text, so that it can be searched in any viewer, and the background is white, so that
//! it can be read. The same plot always gives the same bytes.

use plotters::chart::ChartContext;
use plotters::coord::CoordTranslate;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use privet_core::{Error, Result};
use std::io;
use std::ops::Range;
use std::path::Path;

const WIDTH: u32 = 820;
/// Height of the axes with their labels.
const AXES: u32 = 500;
/// Height of each line of the legend.
const LINE: u32 = 22;
/// Width of the numbers and words beside an axis.
const BESIDE: u32 = 90;

const FONT: &str = "sans-serif";
const TEXT: RGBColor = RGBColor(0x1a, 0x1a, 0x1a);
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
/// Distinguishable with colour blindness too (Okabe, Ito: *Color Universal Design*).
const COLOURS: [RGBColor; 5] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x33, 0x33, 0x33),
];

/// Curves with at most this many points show a dot at each.
const MOST_DOTS: usize = 60;

/// A plot of curves.
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// The axis below.
    pub x: Axis,
    /// The axis on the left, to which the curves belong.
    pub y: Axis,
    /// The axis on the right, if there is one: the left one in another unit.
    pub right: Option<Axis>,
    /// The curves.
    pub series: Vec<Series>,
}

/// A curve, or points.
pub struct Series {
    /// Without one, the legend does not mention the series.
    pub label: String,
    /// Its colour: a number, and equal numbers look alike.
    pub hue: usize,
    /// How it is drawn.
    pub look: Look,
    /// Points outside the axes are not drawn.
    pub points: Vec<(f64, f64)>,
}

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// A line.
    Line,
    /// Dashes.
    Dashed,
    /// Short dashes.
    Faint,
    /// Rings without a line between them.
    Marks,
    /// The same, with the label beside the first, and not below the axes.
    Named,
}

/// The range of an axis, its label and its ticks.
#[derive(Clone)]
pub struct Axis {
    label: String,
    // These and the places of ticks are binary logarithms: all axes are logarithmic.
    low: f64,
    high: f64,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Logarithmic, covering all `values`, with a tick at each power of ten.
    pub fn counts(label: &str, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = extent(values.map(f64::log10));
        let ticks = (low..=high).map(|power| (position(power), power_of_ten(power)));
        Self {
            label: label.to_owned(),
            low: position(low),
            high: position(high),
            ticks: ticks.collect(),
        }
    }

    /// Logarithmic, covering all `values`, with ticks at powers of two.
    pub fn bytes(label: &str, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = extent(values.map(f64::log2));
        Self::powers_of_two(label, f64::from(low), f64::from(high))
    }

    /// The same axis in bytes, if this one counts things of `each` bytes.
    pub fn as_bytes(&self, label: &str, each: f64) -> Self {
        Self::powers_of_two(label, self.low + each.log2(), self.high + each.log2())
    }

    fn powers_of_two(label: &str, low: f64, high: f64) -> Self {
        let step = [1, 2, 5, 10].into_iter().find(|step| (high - low) / f64::from(*step) <= 9.0);
        let step = step.unwrap_or(20);
        // Fractions of a byte get no tick.
        let first = (low / f64::from(step)).ceil().max(0.0) as i32;
        let last = (high / f64::from(step)).floor() as i32;
        let ticks = (first..=last).map(|number| number * step);
        let ticks = ticks.map(|power| (f64::from(power), binary_bytes(power))).collect();
        Self { label: label.to_owned(), low, high, ticks }
    }

    /// Where a value lies on the axis. `None` if it lies outside.
    fn place(&self, value: f64) -> Option<f64> {
        let place = value.log2();
        (self.low..=self.high).contains(&place).then_some(place)
    }
}

/// The range between whole numbers that covers all values. It is at least one wide.
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

/// The binary logarithm of a power of ten.
fn position(power_of_ten: i32) -> f64 {
    f64::from(power_of_ten) * std::f64::consts::LOG2_10
}

/// `1`, `10`, `100`, `1,000`, and `10⁴` from there.
fn power_of_ten(power: i32) -> String {
    match power {
        0..=3 => privet_core::quantities::count(10u64.pow(power as u32)),
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

/// plotters receives places along the axis, which `Axis::place` has already computed.
impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (place - self.low) / (self.high - self.low);
        from + (f64::from(to - from) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight().allow_light_points() {
            true => Vec::new(),
            false => self.ticks.iter().map(|(place, _)| *place).collect(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(place: &f64) -> String {
        place.to_string()
    }

    fn format_ext(&self, place: &f64) -> String {
        let tick = self.ticks.iter().find(|(tick, _)| tick == place);
        tick.map_or(String::new(), |(_, text)| text.clone())
    }
}

/// A visible series: its pieces within the axes, and its colour.
type Shown<'p> = (&'p Series, Vec<Vec<(f64, f64)>>, RGBColor);

type Failed<'s> = DrawingAreaErrorKind<<SVGBackend<'s> as DrawingBackend>::ErrorType>;

impl Plot {
    /// The plot as the text of an SVG file.
    ///
    /// # Errors
    /// None is expected, since it is drawn into memory.
    pub fn svg(&self) -> Result<String> {
        let mut svg = String::new();
        self.draw(&mut svg).map_err(|error| {
            Error::unavailable("the plot cannot be drawn").caused_by(error.to_string())
        })?;
        Ok(svg)
    }

    /// Writes the plot to a file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, file: &Path) -> Result<()> {
        std::fs::write(file, self.svg()?).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::api_misuse(format!(
                "cannot write {}: its directory does not exist",
                file.display()
            )),
            _ => Error::unavailable(format!("cannot write {}: {error}", file.display())),
        })
    }

    fn draw<'s>(&self, svg: &'s mut String) -> Result<(), Failed<'s>> {
        let colour = |series: &Series| COLOURS[series.hue % COLOURS.len()];
        let series = self.series.iter();
        let shown: Vec<Shown<'_>> = series
            .map(|series| (series, self.runs(series), colour(series)))
            .filter(|(_, runs, _)| !runs.is_empty())
            .collect();
        let is_below = |series: &Series| series.look != Look::Named && !series.label.is_empty();
        let lines = shown.iter().filter(|(series, ..)| is_below(series)).count();
        let height = AXES + LINE * (lines as u32 + 1);
        let ground = SVGBackend::with_string(svg, (WIDTH, height)).into_drawing_area();
        ground.fill(&WHITE)?;
        let (above, below) = ground.split_vertically(AXES);

        let space_on_the_right = self.right.as_ref().map_or(0, |_| BESIDE);
        let mut chart = ChartBuilder::on(&above)
            .caption(&self.title, (FONT, 16, &TEXT))
            .margin(10)
            .x_label_area_size(BESIDE / 2)
            .y_label_area_size(BESIDE)
            .right_y_label_area_size(space_on_the_right)
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        match &self.right {
            None => self.draw_curves(&mut chart, &shown)?,
            Some(right) => {
                // From here on, the second axis takes the space on the right.
                let mut chart = chart.set_secondary_coord(self.x.clone(), right.clone());
                self.draw_curves(&mut chart, &shown)?;
                chart
                    .configure_secondary_axes()
                    .label_style((FONT, 13, &TEXT))
                    .axis_desc_style((FONT, 13, &TEXT))
                    .y_labels(right.ticks.len())
                    .y_desc(&right.label)
                    .draw()?;
            }
        }
        let below_the_axes = shown.iter().filter(|(series, ..)| is_below(series));
        for (place, (series, _, colour)) in below_the_axes.enumerate() {
            let y = (LINE * place as u32 + LINE / 2) as i32;
            let (from, to) = (BESIDE as i32, BESIDE as i32 + 32);
            let sample = match series.look {
                Look::Marks | Look::Named => vec![((from + to) / 2, y)],
                _ => vec![(from, y), (to, y)],
            };
            draw_run(&below, series, &sample, *colour)?;
            let style = (FONT, 13, &TEXT).into_text_style(&below);
            let style = style.pos(Pos::new(HPos::Left, VPos::Center));
            below.draw(&Text::new(series.label.as_str(), (to + 12, y), style))?;
        }
        ground.present()
    }

    /// Draws the left and the bottom axis, and the curves between them.
    fn draw_curves<'s>(
        &self,
        chart: &mut ChartContext<'_, SVGBackend<'s>, Cartesian2d<Axis, Axis>>,
        shown: &[Shown<'_>],
    ) -> Result<(), Failed<'s>> {
        chart
            .configure_mesh()
            .bold_line_style(GRID)
            .label_style((FONT, 13, &TEXT))
            .axis_desc_style((FONT, 13, &TEXT))
            .x_labels(self.x.ticks.len())
            .y_labels(self.y.ticks.len())
            .x_desc(&self.x.label)
            .y_desc(&self.y.label)
            .draw()?;
        let mut names = Names::default();
        for (series, runs, colour) in shown {
            for run in runs {
                draw_run(chart.plotting_area(), series, run, *colour)?;
            }
            if let (Look::Named, Some(at)) = (series.look, runs.iter().flatten().next()) {
                let area = chart.plotting_area();
                let (side, offset) = names.place(area.map_coordinate(at), &series.label);
                let style = (FONT, 12, &TEXT).into_text_style(area);
                let style = style.pos(Pos::new(side, VPos::Center));
                let name = Text::new(series.label.clone(), offset, style);
                area.draw(&(EmptyElement::at(*at) + name))?;
            }
        }
        Ok(())
    }

    /// The pieces of a curve that lie within the axes.
    fn runs(&self, series: &Series) -> Vec<Vec<(f64, f64)>> {
        let places = series.points.iter().map(|(x, y)| self.x.place(*x).zip(self.y.place(*y)));
        let places: Vec<_> = places.collect();
        let pieces = places.split(Option::is_none).filter(|piece| !piece.is_empty());
        pieces.map(|piece| piece.iter().flatten().copied().collect()).collect()
    }
}

/// The places of names, in pixels, so that none is written over another.
#[derive(Default)]
struct Names(Vec<(Range<i32>, i32)>);

impl Names {
    const LETTER: i32 = 7;
    const LINE: i32 = 13;

    /// On which side of the point at `(x, y)` its name stands, and where from there.
    fn place(&mut self, (x, y): (i32, i32), name: &str) -> (HPos, (i32, i32)) {
        let width = Self::LETTER * name.chars().count() as i32;
        let is_right = x + width < WIDTH as i32;
        let across = if is_right { x..x + width } else { x - width..x };
        let is_free = |line: i32| {
            self.0.iter().all(|(other, of_other)| {
                across.end <= other.start
                    || other.end <= across.start
                    || (line - of_other).abs() >= Self::LINE
            })
        };
        // Beside the point if there is room, otherwise as near as can be.
        let nearest = (0..).flat_map(|step| [y - step, y + step]).find(|line| is_free(*line));
        let line = nearest.unwrap_or(y);
        self.0.push((across, line));
        match is_right {
            true => (HPos::Left, (10, line - y)),
            false => (HPos::Right, (-10, line - y)),
        }
    }
}

/// Draws a piece of a curve in the look of its series.
fn draw_run<'s, C: CoordTranslate<From: Clone>>(
    area: &DrawingArea<SVGBackend<'s>, C>,
    series: &Series,
    run: &[C::From],
    colour: RGBColor,
) -> Result<(), Failed<'s>> {
    let (points, style) = (run.iter().cloned(), colour.stroke_width(2));
    match series.look {
        Look::Line => area.draw(&PathElement::new(run, style))?,
        Look::Dashed => area.draw(&DashedPathElement::new(points.clone(), 7, 4, style))?,
        Look::Faint => area.draw(&DashedPathElement::new(points.clone(), 2, 4, style))?,
        Look::Marks | Look::Named => {
            return points
                .map(|at| Circle::new(at, 7, style))
                .try_for_each(|ring| area.draw(&ring));
        }
    }
    if series.points.len() <= MOST_DOTS {
        for at in points {
            area.draw(&Circle::new(at, 3, colour.filled()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_are_where_their_values_are() {
        let counts = Axis::counts("", [30.0, 12_000.0].into_iter());
        assert_eq!(texts(&counts), ["10", "100", "1,000", "10⁴", "10⁵"]);
        let bytes = Axis::bytes("", [700.0, 3e9].into_iter());
        assert_eq!(texts(&bytes), ["1 KiB", "32 KiB", "1 MiB", "32 MiB", "1 GiB"]);
        let tick = |axis: &Axis, text: &str| {
            axis.ticks.iter().find(|(_, found)| found == text).map(|(place, _)| *place).unwrap()
        };
        for (axis, value, text) in [(&counts, 1e3, "1,000"), (&bytes, 1048576.0, "1 MiB")] {
            assert!((axis.place(value).unwrap() - tick(axis, text)).abs() < 1e-9, "{text}");
        }
        // At half a kilobyte each, 128 of them stand where 64 KiB does.
        let right = counts.as_bytes("", 512.0);
        let across = (0, 10_000);
        let of_count = counts.map(&counts.place(128.0).unwrap(), across);
        assert!((right.map(&tick(&right, "64 KiB"), across) - of_count).abs() <= 1);
    }

    #[test]
    fn names_stand_beside_their_points_and_not_over_each_other() {
        let mut names = Names::default();
        let side = |placed: (HPos, (i32, i32))| (matches!(placed.0, HPos::Left), placed.1);
        assert_eq!(side(names.place((100, 100), "one")), (true, (10, 0)));
        assert_eq!(side(names.place((100, 100), "one")), (true, (10, -13)));
        assert_eq!(side(names.place((110, 100), "one")), (true, (10, 13)));
        assert_eq!(side(names.place((300, 100), "one")), (true, (10, 0)));
        assert_eq!(side(names.place((WIDTH as i32 - 20, 100), "three")), (false, (-10, 0)));
    }

    #[test]
    fn one_value_or_none_make_an_axis_too() {
        for values in [vec![], vec![1.0], vec![1024.0], vec![0.0], vec![f64::NAN]] {
            for axis in
                [Axis::counts("", values.iter().copied()), Axis::bytes("", values.iter().copied())]
            {
                assert!(axis.high > axis.low && axis.ticks.len() >= 2, "{values:?}");
                let within = |place: f64| (axis.low..=axis.high).contains(&place);
                assert!(axis.ticks.iter().all(|(place, _)| within(*place)));
            }
        }
        // From 1 byte to more than any machine has, and single bits.
        let wide = Axis::bytes("", [1.0, 1e30].into_iter());
        assert!(wide.ticks.len() <= 10);
        let bits = Axis::counts("", [1.0].into_iter()).as_bytes("", 1.0 / 8.0);
        assert!(bits.ticks.iter().all(|(_, text)| text.ends_with(" B")));
    }

    #[test]
    fn curves_end_at_the_axes() {
        let axis = |label: &str| Axis::counts(label, [1.0, 10.0].into_iter());
        let points = vec![(1.0, 20.0), (2.0, 5.0), (5.0, 5.0), (6.0, f64::NAN), (10.0, 10.0)];
        let plot = Plot {
            title: "a < b & c > d".to_owned(),
            x: axis("x"),
            y: axis("y"),
            right: None,
            series: vec![
                Series { label: "inside".to_owned(), hue: 0, look: Look::Line, points },
                Series {
                    label: "outside".to_owned(),
                    hue: 1,
                    look: Look::Marks,
                    points: vec![(30.0, 30.0)],
                },
            ],
        };
        let svg = plot.svg().unwrap();
        assert_eq!(svg, plot.svg().unwrap());
        assert!(svg.contains("a &lt; b &amp; c &gt; d"));
        let blue = r##"stroke="#0072B2""##;
        // Two pieces of the curve, and the sample in the legend.
        assert_eq!(svg.matches(blue).count(), 3, "{svg}");
        assert!(svg.contains("inside") && !svg.contains("outside"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }
}
