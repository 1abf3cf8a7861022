/**
 * Runs the simulated CloudFormation as a process of its own, so that `AWS_ENDPOINT_URL` can name it: `node test/harness/cloud/main.ts`. It
 * prints its URL and runs until it is stopped. It forgets everything when it ends.
 */
import { serveCloud } from "./server.ts";

const { endpoint } = await serveCloud();
process.stdout.write(`${endpoint}\n`);
