/** Which receivers may be called: https to public addresses. The rule is asked when a URL is saved and again for each socket. */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import type { UrlPolicy } from "#shared/config.ts";
import { ApiError } from "#shared/http/problem.ts";

/** A name server that does not answer must not hold up a save; every send asks again. */
const LOOKUP_MS = 2_000;

/** Not public although the library calls them unicast or knows them by no name of their own. */
const deniedV6: ReadonlyArray<[ipaddr.IPv6, number]> = [
  [ipaddr.IPv6.parse("::"), 96],
  [ipaddr.IPv6.parse("64:ff9b::"), 96],
  [ipaddr.IPv6.parse("64:ff9b:1::"), 48],
  [ipaddr.IPv6.parse("2001::"), 32],
  [ipaddr.IPv6.parse("2002::"), 16],
  [ipaddr.IPv6.parse("fec0::"), 10],
];

/** Why this address must not be called, or `undefined` when it may. */
export function addressFault(address: string, policy: UrlPolicy): string | undefined {
  const bare = address.replace(/^\[|\]$/g, "").split("%")[0] ?? "";
  if (!ipaddr.isValid(bare)) return `${address} is no address`;
  // `process` unwraps IPv4-mapped IPv6 addresses.
  const parsed = ipaddr.process(bare);
  const range = parsed.range();
  if (range === "loopback") return policy === "local" ? undefined : `${bare} is a loopback address`;
  if (parsed instanceof ipaddr.IPv6) {
    const denied = deniedV6.some(([prefix, bits]) => parsed.match(prefix, bits));
    if (denied) return `${bare} is not a public address`;
  }
  return range === "unicast" ? undefined : `${bare} is not a public address (${range})`;
}

/** The URL, parsed, when its form is allowed. Throws validation_failed that names the rule. */
export function parseTarget(url: string, policy: UrlPolicy): URL {
  if (!URL.canParse(url)) throw targetError("must be a valid URL");
  const target = new URL(url);
  const schemes = policy === "local" ? ["https:", "http:"] : ["https:"];
  if (!schemes.includes(target.protocol)) throw targetError("must be an https URL");
  if (target.username !== "" || target.password !== "") throw targetError("must not hold a user name or password");
  // WHATWG parsing has already turned 127.1, 0x7f.1, 2130706433 and full-width digits into what they name.
  const host = target.hostname.replace(/^\[|\]$/g, "");
  const fault = isIP(host) === 0 ? undefined : addressFault(host, policy);
  if (fault !== undefined) throw targetError(`must name a public receiver: ${fault}`);
  return target;
}

/** Throws when the URL may not be saved. A name that does not resolve now is judged when it is called. */
export async function assertTarget(url: string, policy: UrlPolicy): Promise<void> {
  const target = parseTarget(url, policy);
  const addresses = await Promise.race([
    lookup(target.hostname.replace(/^\[|\]$/g, ""), { all: true }).catch(() => []),
    new Promise<[]>((resolve) => setTimeout(resolve, LOOKUP_MS, []).unref()),
  ]);
  for (const { address } of addresses) {
    const fault = addressFault(address, policy);
    if (fault !== undefined) throw targetError(`must name a public receiver: ${fault}`);
  }
}

const targetError = (message: string): ApiError =>
  new ApiError("validation_failed", `The url ${message}.`, {
    faults: [{ pointer: "/url", code: "url_not_allowed", message }],
  });
