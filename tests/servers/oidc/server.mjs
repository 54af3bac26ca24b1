// The certified OpenID provider, on loopback, with clients that sign-in is tested with.
//
//     node server.mjs
//
// It prints one JSON line with its address, and ends when its stdin does. Whoever is asked to sign in is asked at
// /interaction/UID, by a form with `account` and `decision` (`approve` or `deny`): a test fills it in by HTTP.
// Any account name is an account. An access token lives as long as its client's name says, in seconds.

import { createServer } from "node:http";
import { once } from "node:events";
import Provider from "oidc-provider";

const LOOPBACK = ["http://127.0.0.1/callback", "http://127.0.0.1/", "http://[::1]/callback"];
const DEVICE = "urn:ietf:params:oauth:grant-type:device_code";

const open = (client_id) => ({
  client_id,
  application_type: "native", // a redirect to loopback may have any port (RFC 8252, section 7.3)
  token_endpoint_auth_method: "none",
  grant_types: ["authorization_code", "refresh_token", DEVICE],
  response_types: ["code"],
  redirect_uris: LOOPBACK,
});
const confidential = (client_id, token_endpoint_auth_method) => ({
  ...open(client_id),
  token_endpoint_auth_method,
  client_secret: `the secret of ${client_id}, which is long enough`,
  grant_types: ["authorization_code", "refresh_token", "client_credentials", DEVICE],
});

const clients = [
  open("public-300"),
  open("public-1"),
  confidential("basic-300", "client_secret_basic"),
  confidential("basic-1", "client_secret_basic"),
  confidential("post-300", "client_secret_post"),
];

const lifetime = (_context, _token, client) => Number(client.clientId.split("-")[1]);

const configuration = {
  clients,
  scopes: ["openid", "profile", "email", "offline_access", "archive.read", "archive.write"],
  claims: { openid: ["sub"], profile: ["name"], email: ["email"] },
  cookies: { keys: ["for tests only"] },
  conformIdTokenClaims: false,
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    deviceFlow: { enabled: true },
    introspection: { enabled: true },
    revocation: { enabled: true },
  },
  findAccount: (_context, id) => ({
    accountId: id,
    claims: () => ({ sub: id, name: `${id} of the tests`, email: `${id}@example.org` }),
  }),
  interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
  issueRefreshToken: async (_context, client) => client.grantTypeAllowed("refresh_token"),
  pkce: { required: (_context, client) => client.clientAuthMethod === "none" },
  rotateRefreshToken: true,
  ttl: {
    AccessToken: lifetime,
    ClientCredentials: lifetime,
    AuthorizationCode: 60,
    DeviceCode: 60,
    Grant: 3600,
    IdToken: 300,
    Interaction: 60,
    RefreshToken: 3600,
    Session: 3600,
  },
};

const FORM = `<!doctype html><form method="post"><input name="account"><input name="decision" value="approve"></form>`;

async function interact(provider, request, response) {
  const interaction = await provider.interactionDetails(request, response);
  if (request.method !== "POST") {
    response.setHeader("content-type", "text/html");
    response.end(FORM);
    return;
  }
  const form = new URLSearchParams(Buffer.concat(await request.toArray()).toString());
  await provider.interactionFinished(request, response, await decided(provider, interaction, form));
}

async function decided(provider, interaction, form) {
  if (form.get("decision") === "deny") {
    return { error: "access_denied", error_description: "The owner said no." };
  }
  if (interaction.prompt.name === "login") {
    return { login: { accountId: form.get("account") } };
  }
  const { missingOIDCScope, missingOIDCClaims } = interaction.prompt.details;
  const known = interaction.grantId && (await provider.Grant.find(interaction.grantId));
  const named = { accountId: interaction.session.accountId, clientId: interaction.params.client_id };
  const grant = known || new provider.Grant(named);
  grant.addOIDCScope((missingOIDCScope ?? []).join(" "));
  grant.addOIDCClaims(missingOIDCClaims ?? []);
  return { consent: { grantId: await grant.save() } };
}

const server = createServer();
server.listen(0, "127.0.0.1");
await once(server, "listening");
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, configuration);
const answer = provider.callback();

server.on("request", (request, response) => {
  if (!request.url.startsWith("/interaction/")) {
    answer(request, response);
    return;
  }
  interact(provider, request, response).catch((error) => {
    response.statusCode = error.statusCode ?? 500;
    response.end(error.message);
  });
});
process.stdin.on("end", () => process.exit()).resume();
process.stdout.write(`${JSON.stringify({ issuer })}\n`);
