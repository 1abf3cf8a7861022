/** Finds the address of the local service. The service and its clients read the variables `HOST` and `PORT`. */
import * as z from "zod/mini";
import { LocalError } from "./error.ts";

/** The AWS region and account id of the local servers. */
export const REGION = "us-east-1";
export const ACCOUNT = "000000000000";

export const Host = z._default(z.string().check(z.minLength(1)), "127.0.0.1");
export const Port = z._default(
  z.pipe(z.pipe(z.string().check(z.regex(/^\d+$/)), z.transform(Number)), z.int().check(z.maximum(65_535))),
  3000,
);
const Address = z.object({ HOST: Host, PORT: Port });

/** Returns the URL for clients on this machine, for example `http://127.0.0.1:3000`. */
export function urlAt(host: string, port: number): string {
  const everywhere = host === "0.0.0.0" || host === "::";
  const name = everywhere ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return `http://${name}:${port}`;
}

/** Returns the URL of a service that was started with these variables. Throws a LocalError that names the first invalid one. */
export function serviceUrl(env: NodeJS.ProcessEnv = process.env): string {
  const parsed = z.safeParse(Address, env);
  if (!parsed.success) throw firstFault(parsed.error);
  const { HOST, PORT } = parsed.data;
  if (PORT === 0) throw new LocalError("PORT: take the port from the line `ready` of the service");
  return urlAt(HOST, PORT);
}

/** Returns an error that names the first invalid setting. A setting in `flags` is a command-line option, so it gets the prefix `--`. */
export function firstFault({ issues: [first] }: z.core.$ZodError, flags: readonly string[] = []): LocalError {
  const name = String(first?.path[0]);
  const why = first?.code === "custom" ? first.message : "the value is not valid";
  return new LocalError(`${flags.includes(name) ? "--" : ""}${name}: ${why}`);
}
