/** The roles with which API Gateway may invoke the functions of the API. */
import { PolicyDocument, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import type { Construct } from "constructs";
import type { Method } from "../routes/route.ts";
import type { Invoked } from "./api-definition.ts";
import { allow } from "./rights.ts";

/** Takes and returns the function's ARN. */
export type Invoker = (functionArn: string) => Invoked;

/**
 * One role for GET routes, and one for all others. Without roles, the stack would need a permission resource for each function. A policy
 * may have at most 10 240 characters, about 85 ARNs. The method of a route never changes, so API Gateway may invoke a function at every
 * moment of a deployment.
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
