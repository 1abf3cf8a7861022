/** Answers 405 with a list of the allowed methods if a path does not have the method of the request. The body may have any media type. */
import { readFileSync } from "node:fs";
import * as z from "zod/mini";
import { refusingMethods } from "#shared/http/method-not-allowed.ts";

/** The build puts the methods of each path next to the function. */
const Methods = z.record(z.string(), z.array(z.string()));
const methods = new URL("methods.json", import.meta.url);

export const handler = refusingMethods((path) => Methods.parse(JSON.parse(readFileSync(methods, "utf8")))[path] ?? []);
