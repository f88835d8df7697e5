//! The operator's commands about money, as the command line says them, against a store that can be paid.

mod audit;
mod buyers;
mod erase;
mod gateways;
mod notices;
mod pay;
mod policy;
mod refunds;
mod staff;
mod stores;

use clap::Parser;
use edge::Environment;
use edge::sealing::DEVELOPMENT_KEYS;
use operator::{Cli, Failure, Output};
use tests::gateway::Dialect;
use tests::till::Till;

/// A terminal with the variables of a local store.
struct Terminal {
    database_url: String,
    variables: Vec<(&'static str, String)>,
}

impl Terminal {
    fn of(till: &Till) -> Self {
        let variables = vec![
            ("TIRADA_STAGE", "local".to_owned()),
            ("TIRADA_SEALING_KEYS", DEVELOPMENT_KEYS.to_owned()),
            ("TIRADA_STRIPE_URL", till.gateway.url(Dialect::Stripe)),
            ("TIRADA_MERCADO_PAGO_URL", till.gateway.url(Dialect::MercadoPago)),
        ];
        Self { database_url: till.database.app_location(), variables }
    }

    /// Another value of a variable.
    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.variables.retain(|(known, _)| *known != name);
        self.variables.push((name, value.to_owned()));
        self
    }

    /// Runs a command.
    async fn run(&self, arguments: &[&str]) -> Result<Output, Failure> {
        let line = ["tirada", "--database-url", &self.database_url].into_iter().chain(arguments.iter().copied());
        let cli = Cli::try_parse_from(line).unwrap();
        let variables = self.variables.clone();
        let environment = Environment::from_lookup(move |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
        });
        operator::run(cli, &environment).await
    }

    /// Runs a command that must be done: exit code 0.
    async fn done(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.run(arguments).await.unwrap();
        assert_eq!(output.code(), 0, "{output:?}");
        output.json().clone()
    }

    /// Runs a command that must not be done; its exit code and what it says.
    async fn refused(&self, arguments: &[&str]) -> (u8, String) {
        let failure = self.run(arguments).await.unwrap_err();
        (failure.code(), format!("{failure:?}"))
    }
}
