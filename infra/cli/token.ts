/** Implements `npm run --silent token -- EMAIL`, which prints only an access token of the running local service to stdout, for scripts. */

import { localToken } from "../local/local-token.ts";
import { serviceUrl } from "../local/servers/address.ts";
import { argumentsOf, exitCodes, nameTarget, operandIn, runCommand } from "./command/options.ts";

const usage = `npm run --silent token -- EMAIL
    prints an access token of this user of the running local service, and nothing else
    HOST and PORT, the environment variables of npm start, say where the service is (default: 127.0.0.1 and 3000)
exit code 0: done, 1: failed, 2: wrong usage`;

await runCommand(async () => {
  const email = operandIn(argumentsOf({}, usage).positionals, "EMAIL", usage);
  const base = serviceUrl();
  nameTarget(`local service at ${base}`);
  console.log(await localToken(base, email));
  return exitCodes.done;
});
