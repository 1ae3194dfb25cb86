//! `positronic token`: access tokens for the API of `serve`.

use positronic_core::runner::{Clock as _, SystemClock};
use positronic_server::{Token, TokenError};
use serde_json::json;

use crate::app::{Failure, ProjectStore, Ui};
use crate::cli::{Exit, TokenArgs, TokenCommand, TokenCreateArgs, TokenListArgs, TokenRevokeArgs};

pub(crate) async fn token(args: &TokenArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    match &args.command {
        TokenCommand::Create(args) => create(args, ui).await,
        TokenCommand::List(args) => list(args, ui).await,
        TokenCommand::Revoke(args) => revoke(args, ui).await,
    }
}

async fn create(args: &TokenCreateArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let store = ProjectStore::open(ui).await?;
    let now = SystemClock.now();
    let token = Token::builder()
        .subject(&args.subject)
        .user(args.user.clone())
        .scopes(args.scope.clone())
        .brains(args.brains.clone())
        .created(now)
        .expires(args.expires.map(|left| now.after(left)))
        .build();
    let (token, written) = Token::create(&store.client(), token).await.map_err(|error| match error {
        TokenError::Store(error) => error.into(),
        other => Failure::environment(other),
    })?;
    let shown = match args.json {
        true => ui.json_line(&json!({"id": token.id, "token": written})),
        false => ui.print(&written),
    };
    if let Some(error) = shown.err().or_else(|| ui.unwritten()) {
        let client = store.client();
        return Err(match Token::revoke(&client, &token.id).await {
            Ok(_) => Failure::from(error).hint("the token could not be shown, so it is revoked"),
            Err(_) => {
                let revoke = ui.command(&["token", "revoke", &token.id]);
                Failure::from(error).hint(format!("the token could not be shown; revoke it with: {revoke}"))
            }
        });
    }
    if args.json {
        return Ok(Exit::Done);
    }
    ui.notice("the token is shown only now; programs send it as `Authorization: Bearer TOKEN`")?;
    if args.user.is_none() {
        ui.notice("it sees the runs of all users; --user NAME limits it to those of one")?;
    }
    ui.notice(&format!("revoke it with: {}", ui.command(&["token", "revoke", &token.id])))?;
    Ok(Exit::Done)
}

async fn list(args: &TokenListArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let store = ProjectStore::open_to_read(ui).await?;
    let tokens = Token::list(&store.client()).await?;
    let now = SystemClock.now();
    for token in &tokens {
        let Token { id, subject, user, scopes, brains, created, expires, .. } = token;
        if args.json {
            ui.json_line(&json!({
                "id": id, "subject": subject, "user": user, "scopes": scopes, "brains": brains, "created": created,
                "expires": expires,
            }))?;
            continue;
        }
        let scopes = scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(",");
        let user = user.as_ref().map_or_else(|| "all users".to_owned(), |user| format!("user {user}"));
        let brains = if brains.is_empty() { String::new() } else { format!("  starts {}", brains.join(", ")) };
        let expires = match expires {
            None => "never expires".to_owned(),
            Some(at) if *at <= now => "has expired".to_owned(),
            Some(at) => format!("expires {at}"),
        };
        ui.row(&format!("{id}  {subject}  {scopes}  {user}{brains}  created {created}  {expires}"))?;
    }
    if tokens.is_empty() && !args.json {
        ui.notice(&format!(
            "there are no tokens in {}; `{}` creates one",
            store.location,
            ui.command(&["token", "create", "NAME"])
        ))?;
    }
    Ok(Exit::Done)
}

async fn revoke(args: &TokenRevokeArgs, ui: &mut Ui) -> Result<Exit, Failure> {
    let store = ProjectStore::open_existing(ui).await?;
    if !Token::revoke(&store.client(), &args.id).await? {
        let list = ui.command(&["token", "list"]);
        return Err(Failure::usage(format!("unknown token `{}` in {}", args.id, store.location))
            .hint(format!("`{list}` lists the tokens")));
    }
    if args.json {
        ui.json_line(&json!({"revoked": args.id}))?;
    } else {
        ui.print(&format!("revoked {}", args.id))?;
    }
    Ok(Exit::Done)
}
