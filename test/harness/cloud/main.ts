/**
 * Runs the simulated CloudFormation in a separate process: `node test/harness/cloud/main.ts`. It prints its URL, which can be the value of
 * `AWS_ENDPOINT_URL`, and runs until it is stopped. Its data is in memory and is lost when it ends.
 */
import { serveCloud } from "./server.ts";

const { endpoint } = await serveCloud();
process.stdout.write(`${endpoint}\n`);
