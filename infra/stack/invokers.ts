/** Creates the roles with which API Gateway may invoke the functions of the API. */
import { PolicyDocument, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import type { Construct } from "constructs";
import type { Method } from "../routes/route.ts";
import type { Invoked } from "./api-definition.ts";
import { allow } from "./rights.ts";

/**
 * Allows API Gateway to invoke the function with this ARN. Returns this ARN and the ARN of the role with which API Gateway invokes the
 * function.
 */
export type Invoker = (functionArn: string) => Invoked;

/**
 * Creates two roles with which API Gateway invokes functions: one for GET routes, and one for all other routes. Without a role, the stack
 * would need a permission resource for each function. One role is not enough for all functions, because its policy may have at most 10 240
 * characters, which are about 85 ARNs. The method of a route never changes, because a change would break clients. So a function never moves
 * to the other role, and API Gateway may invoke it at every moment of a deployment.
 */
export function createInvokers(home: Construct): (method: Method) => Invoker {
  const reads = createInvoker(home, "GetInvoker");
  const others = createInvoker(home, "OtherInvoker");
  return (method) => (method === "GET" ? reads : others);
}

function createInvoker(home: Construct, id: string): Invoker {
  const statement = allow(["lambda:InvokeFunction"], []);
  const role = new Role(home, id, {
    assumedBy: new ServicePrincipal("apigateway.amazonaws.com"),
    inlinePolicies: { invoke: new PolicyDocument({ statements: [statement] }) },
  });
  return (functionArn) => {
    statement.addResources(functionArn);
    return { functionArn, invokerArn: role.roleArn };
  };
}
