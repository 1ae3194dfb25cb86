//! The examples on the command line: `cargo run -p positronic-examples -- list` lists them.

use std::process::ExitCode;
use std::sync::Arc;

use positronic_cli::Project;
use positronic_examples::acme::Acme;
use positronic_examples::bookshop::Shop;
use positronic_examples::nested::Newsroom;
use positronic_examples::{
    agentloop, analyst, blueprints, bookshop, compaction, concierge, delegate, flags, kitchen, library, memory,
    minimal, modes, nested, offers, release, rover, support, toolsets, triggers, warranty, weather,
};
use positronic_plugins::MemoryFacts;

fn main() -> ExitCode {
    let shop = Shop::example();
    Project::new()
        .brain(minimal::minimal())
        .cassette(minimal::TITLE, minimal::CASSETTE)
        .brain(nested::newsletter().bind(Newsroom::example()))
        .cassette(nested::TITLE, nested::CASSETTE)
        .brain(delegate::trip())
        .cassette(delegate::TITLE, delegate::CASSETTE)
        .brain(release::release())
        .cassette(release::TITLE, release::CASSETTE)
        .brain(support::support().bind(Acme::example()))
        .cassette(support::TITLE, support::CASSETTE)
        .brain(offers::offers())
        .cassette(offers::TITLE, offers::CASSETTE)
        .brain(library::library())
        // The search in the background is a run of its own, which continues after a restart.
        .brain(library::stacks())
        .cassette(library::TITLE, library::CASSETTE)
        .brain(warranty::warranty())
        .cassette(warranty::TITLE, warranty::CASSETTE)
        .brain(weather::weather())
        .cassette(weather::TITLE, weather::CASSETTE)
        .brains(shop.brains.bind(&shop))
        .start_on(shop.webhooks.orders.clone(), bookshop::parcel().bind(Arc::clone(&shop)), bookshop::order_of_the_page)
        .cassette(bookshop::TITLE, bookshop::CASSETTE)
        .cassette(bookshop::PARCEL, bookshop::PARCEL_CASSETTE)
        .brain(flags::flags())
        .cassette(flags::TITLE, flags::CASSETTE)
        .brain(kitchen::kitchen())
        .cassette(kitchen::TITLE, kitchen::CASSETTE)
        .brain(concierge::concierge())
        .cassette(concierge::TITLE, concierge::CASSETTE)
        .brain(toolsets::assistant())
        .cassette(toolsets::TITLE, toolsets::CASSETTE)
        .brain(modes::helpdesk())
        .cassette(modes::TITLE, modes::CASSETTE)
        .brain(compaction::proofreader())
        .cassette(compaction::TITLE, compaction::CASSETTE)
        .brain(blueprints::planner())
        .cassette(blueprints::TITLE, blueprints::CASSETTE)
        .brain(memory::baker(MemoryFacts::default()))
        .cassette(memory::TITLE, memory::CASSETTE)
        .brain(triggers::gardener())
        .cassette(triggers::TITLE, triggers::CASSETTE)
        .brain(analyst::analyst())
        .cassette(analyst::TITLE, analyst::CASSETTE)
        .brain(rover::rover())
        .cassette(rover::TITLE, rover::CASSETTE)
        .brain(agentloop::agentloop())
        .cassette(agentloop::TITLE, agentloop::CASSETTE)
        .main()
}
