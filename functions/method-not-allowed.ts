/** Answers a request whose method its path does not have, whatever the media type of its body: 405 with the methods that there are. */
import { readFileSync } from "node:fs";
import * as z from "zod/mini";
import { refusingMethods } from "#shared/http/method-not-allowed.ts";

/** The bundler puts the methods of each path beside the function. */
const Methods = z.record(z.string(), z.array(z.string()));
const methods = new URL("methods.json", import.meta.url);

export const handler = refusingMethods((path) => Methods.parse(JSON.parse(readFileSync(methods, "utf8")))[path] ?? []);
