/** The address of the local service: `HOST` and `PORT`, as the service and its clients read them. */
import * as z from "zod/mini";
import { LocalError } from "./error.ts";

export const Host = z._default(z.string().check(z.minLength(1)), "127.0.0.1");
export const Port = z._default(
  z.pipe(z.pipe(z.string().check(z.regex(/^\d+$/)), z.transform(Number)), z.int().check(z.maximum(65_535))),
  3000,
);
const Address = z.object({ HOST: Host, PORT: Port });

/** `http://127.0.0.1:3000`: the address for clients on this machine. */
export function urlAt(host: string, port: number): string {
  const everywhere = host === "0.0.0.0" || host === "::";
  const name = everywhere ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return `http://${name}:${port}`;
}

/** URL of the service that was started with these variables. Throws a LocalError that names an invalid one. */
export function serviceUrl(env: NodeJS.ProcessEnv = process.env): string {
  const parsed = z.safeParse(Address, env);
  if (!parsed.success) throw firstFault(parsed.error);
  const { HOST, PORT } = parsed.data;
  if (PORT === 0) throw new LocalError("PORT: take the port from the line `ready` of the service");
  return urlAt(HOST, PORT);
}

/** An error that names the first invalid setting, with the message of its own rule. */
export function firstFault({ issues: [first] }: z.core.$ZodError, flags: readonly string[] = []): LocalError {
  const name = String(first?.path[0]);
  const why = first?.code === "custom" ? first.message : "the value is not valid";
  return new LocalError(`${flags.includes(name) ? "--" : ""}${name}: ${why}`);
}
