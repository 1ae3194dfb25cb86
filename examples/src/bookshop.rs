//! A project as a whole: brains and webhooks that are fields of the services, a prompt in a file, and a conversation that keeps its basket.
//!
//! `chat bookshop` talks to a customer; the basket is the brain's state, which the next message begins with. A basket is sent by the
//! brain `Parcel`, which waits for the webhook `payment`. An order of the shop's page needs no conversation: the webhook `orders` starts
//! a run of `Parcel`.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::dsl::StartInput;
use positronic_core::prelude::*;
use positronic_templates::{Template, templates};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The title of the brain that talks.
pub const TITLE: &str = "Bookshop";

/// Answers without a configured model; written by hand.
pub const CASSETTE: &str = include_str!("../cassettes/bookshop.jsonl");

/// The title of the brain that sends.
pub const PARCEL: &str = "Parcel";

/// The bank's notice; written by hand.
pub const PARCEL_CASSETTE: &str = include_str!("../cassettes/parcel.jsonl");

positronic_core::brains! {
    /// The brains of the shop.
    #[derive(Debug)]
    pub struct ShopBrains for Shop {
        /// Talks to customers.
        pub counter: Brain<(), Basket, Shop> = counter(),
        /// Sends an order once it is paid.
        pub parcel: Brain<Order, Sent, Shop> = parcel(),
    }
}

positronic_core::webhooks! {
    /// The webhooks of the shop.
    #[derive(Debug)]
    pub struct ShopWebhooks {
        /// An order of the shop's page.
        pub orders: Webhook<Order> = "orders",
        /// The bank's notice of a payment.
        pub payment: Webhook<Payment> = "payment",
    }
}

templates! {
    /// The prompts of the shop.
    #[derive(Debug)]
    pub struct ShopPrompts {
        counter: Template<CounterPrompt> = "../prompts/bookshop.md",
    }
}

/// The services of all brains of the shop.
#[derive(Debug)]
pub struct Shop {
    /// Its brains.
    pub brains: ShopBrains,
    /// Its webhooks.
    pub webhooks: ShopWebhooks,
    prompts: ShopPrompts,
    shelf: Vec<Book>,
}

impl Shop {
    /// Opens a shop with two books. A prompt with an unknown variable is found here.
    #[must_use]
    pub fn example() -> Arc<Self> {
        let book = |title: &str, euros| Book { title: title.to_owned(), euros };
        let shelf = vec![book("The Lighthouse", 18), book("Moss of the North", 31)];
        let (brains, webhooks, prompts) = (ShopBrains::new(), ShopWebhooks::new(), ShopPrompts::new());
        Arc::new(Self { brains, webhooks, prompts, shelf })
    }
}

/// A book of the shelf.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Book {
    title: String,
    euros: u32,
}

/// The variables of the prompt.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CounterPrompt {
    shelf: Vec<Book>,
    basket: Vec<String>,
}

/// What a customer wants to have, over all messages of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basket {
    /// Titles that are not sent yet.
    pub titles: Vec<String>,
    /// What was sent.
    pub sent: Vec<Sent>,
}

/// Books to send.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Order {
    /// Its number, which the payment names
    pub number: String,
    /// Titles of books
    pub titles: Vec<String>,
}

impl Default for Order {
    fn default() -> Self {
        Self { number: "o-7".to_owned(), titles: vec!["The Lighthouse".to_owned()] }
    }
}

/// What the bank reports.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Payment {
    /// Euros
    pub euros: u32,
}

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sent {
    /// The books are on their way.
    Parcel {
        /// Titles of books.
        titles: Vec<String>,
        /// Euros.
        paid: u32,
    },
    /// It was not paid in time.
    Unpaid,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Pick {
    /// A title of the shelf
    title: String,
}

/// Makes an order of the shop's page the input of a run of `Parcel`.
///
/// # Errors
///
/// If the order has no books.
pub fn order_of_the_page(order: Order) -> Result<StartInput<Order>, Error> {
    if order.titles.is_empty() {
        return Err(Error::new("an order without books is not sent"));
    }
    Ok(StartInput::new(order).tag("page"))
}

fn counter() -> Brain<(), Basket, Shop> {
    brain(TITLE)
        .description("Sells books in a conversation, whose basket it keeps")
        .services::<Shop>()
        .state(Basket::default())
        .keep_state()
        .r#loop("Talk", |cx| {
            let prompt = CounterPrompt { shelf: cx.services.shelf.clone(), basket: cx.state.titles.clone() };
            Ok(cx
                .system(cx.services.prompts.counter.render(&prompt)?)
                .tool("put", |t| {
                    t.description("Puts a book into the basket").execute(async |Pick { title }, cx| {
                        if !cx.services.shelf.iter().any(|book| book.title == title) {
                            return Err(Error::new(format!("`{title}` is not on the shelf")));
                        }
                        cx.update(move |basket| basket.titles.push(title));
                        Ok("it is in the basket")
                    })
                })
                .tool("send", |t| {
                    t.description("Sends the basket, once it is paid")
                        .brain(&cx.services.brains.parcel)
                        .map_input(|basket: &Basket| Order {
                            number: format!("o-{}", basket.sent.len() + 1),
                            titles: basket.titles.clone(),
                        })
                        .map_output(|basket, sent| {
                            basket.titles.clear();
                            basket.sent.push(sent);
                        })
                }))
        })
        .build()
}

/// Builds the brain that sends an order once it is paid.
pub fn parcel() -> Brain<Order, Sent, Shop> {
    brain(PARCEL)
        .description("Sends an order once it is paid")
        .services::<Shop>()
        .options::<Order>()
        .step("Reserve", async |cx| Ok(Order::clone(&cx.options)))
        .wait(
            "Payment",
            |w| w.on(ShopWebhooks::new().payment, |order| order.number.clone()).within(Duration::from_hours(72)),
            |order, payment| match payment {
                Some(Payment { euros }) => Sent::Parcel { titles: order.titles, paid: euros },
                None => Sent::Unpaid,
            },
        )
        .build()
}
