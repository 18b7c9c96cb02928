//! Latency by percentile, as an SVG.
//!
//! Both axes are logarithmic: to the right each step is a tenth of the requests left, upwards ten times the latency.

use std::fmt::Write;

use hdrhistogram::Histogram;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 45.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 60.0;
/// Points of a line.
const POINTS: u32 = 200;
/// Colours that are told apart in print and by the colour-blind.
const COLOURS: [&str; 6] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
];

/// A line of the plot.
#[derive(Debug)]
pub struct Line<'a> {
    /// What it shows.
    pub name: String,
    /// Values in ns.
    pub histogram: &'a Histogram<u64>,
    /// How it is drawn.
    pub stroke: Stroke,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// For what the server did.
    Solid,
    /// For the generator's own lateness.
    Dashed,
}

/// The whole file.
pub fn svg(title: &str, lines: &[Line<'_>]) -> String {
    let lines: Vec<&Line<'_>> = lines
        .iter()
        .filter(|line| !line.histogram.is_empty())
        .collect();
    let most = lines.iter().map(|l| l.histogram.max()).max().unwrap_or(1);
    let count = lines.iter().map(|l| l.histogram.len()).max().unwrap_or(1);
    let least = lines
        .iter()
        .map(|l| l.histogram.min())
        .min()
        .unwrap_or(most);
    let axes = Axes {
        nines: (count as f64).log10().clamp(2.0, 6.0),
        least: if least < 1_000 { 0.1 } else { 1.0 },
        most: 10_f64.powf((most as f64 / 1_000.0).log10().ceil().max(1.0)),
    };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"25\" font-size=\"16\">{}</text>\n",
        escaped(title)
    );
    axes.draw(&mut out);
    for (index, line) in lines.iter().enumerate() {
        axes.draw_line(line, COLOURS[index % COLOURS.len()], index, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

/// Scales: x from the median's left to `nines` nines, y from a power of ten of a µs to another.
struct Axes {
    nines: f64,
    least: f64,
    most: f64,
}

impl Axes {
    fn x(&self, nines: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * nines / self.nines
    }

    fn y(&self, microseconds: f64) -> f64 {
        let decades = |to: f64| (to / self.least).log10();
        let height = decades(microseconds.max(self.least)) / decades(self.most);
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * height
    }

    fn draw(&self, out: &mut String) {
        let mut push = |text: String| out.push_str(&text);
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        let labels = ["0", "90", "99", "99.9", "99.99", "99.999", "99.9999"];
        for (nines, label) in (0_u32..).zip(labels) {
            let nines = f64::from(nines);
            if nines > self.nines {
                break;
            }
            let x = self.x(nines);
            push(format!(
                "<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#ddd\"/>\n\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label} %</text>\n",
                bottom + 20.0
            ));
        }
        let mut microseconds = self.least;
        // The powers of ten are not exact.
        while microseconds < self.most * 2.0 {
            let y = self.y(microseconds);
            push(format!(
                "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#ddd\"/>\n\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{microseconds} µs</text>\n",
                LEFT - 8.0,
                y + 4.0
            ));
            microseconds *= 10.0;
        }
        push(format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">percentile of requests</text>\n",
            f64::midpoint(LEFT, right),
            HEIGHT - 15.0
        ));
    }

    fn draw_line(&self, line: &Line<'_>, colour: &str, index: usize, out: &mut String) {
        // A histogram of n values has nothing to say beyond the percentile of its greatest.
        let last = (line.histogram.len() as f64).log10().min(self.nines);
        let mut path = String::new();
        for point in 0..=POINTS {
            let nines = last * f64::from(point) / f64::from(POINTS);
            let quantile = 1.0 - 10_f64.powf(-nines);
            let microseconds = line.histogram.value_at_quantile(quantile) as f64 / 1_000.0;
            let command = if point == 0 { 'M' } else { 'L' };
            let (x, y) = (self.x(nines), self.y(microseconds));
            write!(path, "{command}{x:.1} {y:.1}").expect("a string takes all that is written");
        }
        let dashes = match line.stroke {
            Stroke::Solid => "",
            Stroke::Dashed => " stroke-dasharray=\"6 4\"",
        };
        let y = TOP + 18.0 * (index as f64 + 1.0);
        let x = LEFT + 15.0;
        write!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>\n\
             <path d=\"M{x} {:.1}h30\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>\n\
             <text x=\"{:.1}\" y=\"{y:.1}\">{}</text>\n",
            y - 4.0,
            x + 38.0,
            escaped(&line.name)
        )
        .expect("a string takes all that is written");
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 1_000_000_000, 3).unwrap();
        values
            .into_iter()
            .for_each(|value| histogram.record(value).unwrap());
        histogram
    }

    fn line<'a>(name: &str, histogram: &'a Histogram<u64>) -> Line<'a> {
        Line {
            name: name.to_owned(),
            histogram,
            stroke: Stroke::Solid,
        }
    }

    #[test]
    fn each_line_that_has_values_is_drawn_inside_the_frame() {
        let values = histogram((1..10_000).map(|k| k * 1_000));
        let empty = histogram([]);
        let lines = [line("a < b", &values), line("nothing", &empty)];
        let svg = svg("p & q", &lines);

        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("fill=\"none\"").count(), 1);
        assert!(svg.contains("a &lt; b") && svg.contains("p &amp; q"));
        assert!(!svg.contains("nothing") && !svg.contains("NaN") && !svg.contains("inf"));
        let path = svg.split("<path d=\"M").find(|p| p.contains('L')).unwrap();
        for point in path.split('"').next().unwrap().split('L') {
            let (x, y) = point.split_once(' ').unwrap();
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((LEFT - 0.1..=WIDTH - RIGHT + 0.1).contains(&x), "{point}");
            assert!((TOP - 0.1..=HEIGHT - BOTTOM + 0.1).contains(&y), "{point}");
        }
    }

    #[test]
    fn the_axis_begins_below_what_is_drawn() {
        let axis = |least: u64| {
            let values = histogram([least, 20_000]);
            let svg = svg("axis", &[line("values", &values)]);
            let labels = svg.split("text-anchor=\"end\">").skip(1);
            let labels = labels.map(|label| label.split('<').next().unwrap().to_owned());
            labels.collect::<Vec<_>>()
        };
        assert_eq!(axis(180), ["0.1 µs", "1 µs", "10 µs", "100 µs"]);
        assert_eq!(axis(1_800), ["1 µs", "10 µs", "100 µs"]);
    }

    #[test]
    fn without_values_there_are_axes() {
        assert!(svg("empty", &[]).contains("99 %"));
    }
}
