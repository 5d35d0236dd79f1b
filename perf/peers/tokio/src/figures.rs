//! The fields of one answer in the order they are printed.

pub enum Value {
    Text(String),
    Number(u64),
    Decimal(f64),
    Quantiles(Vec<f64>),
}

#[derive(Default)]
pub struct Figures(Vec<(&'static str, Value)>);

impl Figures {
    pub fn text(self, name: &'static str, value: impl ToString) -> Self {
        self.add(name, Value::Text(value.to_string()))
    }

    pub fn number(self, name: &'static str, value: u64) -> Self {
        self.add(name, Value::Number(value))
    }

    pub fn decimal(self, name: &'static str, value: f64) -> Self {
        self.add(name, Value::Decimal(value))
    }

    pub fn quantiles(self, name: &'static str, values: Vec<f64>) -> Self {
        self.add(name, Value::Quantiles(values))
    }

    pub fn extend(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    fn add(mut self, name: &'static str, value: Value) -> Self {
        self.0.push((name, value));
        self
    }

    pub fn json(&self) -> String {
        let fields: Vec<String> = self
            .0
            .iter()
            .map(|(name, value)| format!("\"{name}\": {}", value.json()))
            .collect();
        format!("{{{}}}", fields.join(", "))
    }

    /// One line for people.
    pub fn line(&self) -> String {
        let fields: Vec<String> = self
            .0
            .iter()
            .map(|(name, value)| format!("{name} {}", value.line()))
            .collect();
        fields.join(", ")
    }
}

impl Value {
    fn json(&self) -> String {
        match self {
            Self::Text(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
            Self::Quantiles(values) => {
                let values: Vec<String> =
                    values.iter().map(|value| format!("{value:.3}")).collect();
                format!("[{}]", values.join(", "))
            }
            _ => self.line(),
        }
    }

    /// Of quantiles it shows some.
    fn line(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::Decimal(decimal) => format!("{decimal:.3}"),
            Self::Quantiles(values) => format!(
                "{:.3} least {:.3} median {:.3} 99% {:.3} most",
                values[0], values[500], values[990], values[1000]
            ),
        }
    }
}
